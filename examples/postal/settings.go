package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"
)

const (
	configVariable = "POSTAL_CONFIG_FILE_PATH"       // Postal's own
	defaultConfig  = "/opt/postal/config/postal.yml" // where Postal's installer puts it on the host
)

// A setting is one of Postal's that this tool needs. Like Postal, it takes an environment variable before the file
// (github.com/postalserver/postal, lib/postal/config.rb and doc/config); its flag comes before both.
type setting struct {
	group, name, fallback, usage string
}

func settings() []setting {
	return []setting{
		{"main_db", "host", "localhost", "host of Postal's main database, or the path of its Unix socket"},
		{"main_db", "port", "3306", "port of the main database"},
		{"main_db", "username", "postal", "user name there"},
		{"main_db", "password", "", "file with the password there"},
		{"main_db", "database", "postal", "name of the main database"},
		{"main_db", "encoding", "utf8mb4", "character set of the connection"},
		{"message_db", "host", "localhost", "host of the message databases, or the path of its Unix socket"},
		{"message_db", "port", "3306", "port of the message databases"},
		{"message_db", "username", "postal", "user name there"},
		{"message_db", "password", "", "file with the password there"},
		{"message_db", "encoding", "utf8mb4", "character set of the connection"},
		{"message_db", "database_name_prefix", "postal", "what the message databases' names begin with"},
	}
}

func (s setting) variable() string { return strings.ToUpper(s.group + "_" + s.name) }

// flag returns the name of the setting's flag. A password is given in a file, since everybody sees a command line.
func (s setting) flag() string {
	name := strings.ReplaceAll(s.group+"-"+s.name, "_", "-")
	if s.name == "password" {
		name += "-file"
	}
	return name
}

// legacyName is the setting's name in a postal.yml without "version: 2", and false where such a file can't have it
// (lib/postal/legacy_config_source.rb).
func (s setting) legacyName() (name string, ok bool) {
	switch s.variable() {
	case "MESSAGE_DB_DATABASE_NAME_PREFIX":
		return "prefix", true
	case "MESSAGE_DB_ENCODING":
		return "", false
	}
	return s.name, true
}

// installation says where one Postal keeps its data.
type installation struct {
	main, message endpoint
	database      string // the main database
	prefix        string // message databases are named prefix-server-ID
}

// addSettingFlags adds --config and a flag for each setting. The flags have no defaults of their own, so that one that is
// not given is seen as such.
func addSettingFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "Postal's postal.yml (default $"+configVariable+", else "+defaultConfig+" if it is there)")
	for _, s := range settings() {
		flags.String(s.flag(), "", s.usage)
	}
}

// readInstallation reads the settings from flags, environment and file. All faults are joined; none shows a password.
func readInstallation(flags *pflag.FlagSet, lookupEnv func(string) (string, bool)) (installation, error) {
	file, err := readConfig(flags, lookupEnv)
	if err != nil {
		return installation{}, err
	}
	values := map[string]string{}
	var faults []error
	for _, s := range settings() {
		value, err := s.read(flags, lookupEnv, file)
		faults = append(faults, err)
		values[s.variable()] = value
	}
	message, errMessage := newEndpoint(values, "MESSAGE_DB_")
	main, errMain := newEndpoint(values, "MAIN_DB_")
	if err := errors.Join(append(faults, errMain, errMessage)...); err != nil {
		return installation{}, err
	}
	return installation{main: main, message: message, database: values["MAIN_DB_DATABASE"], prefix: values["MESSAGE_DB_DATABASE_NAME_PREFIX"]}, nil
}

func (s setting) read(flags *pflag.FlagSet, lookupEnv func(string) (string, bool), file *postalYAML) (string, error) {
	if flag := flags.Lookup(s.flag()); flag.Changed {
		if s.name != "password" {
			return flag.Value.String(), nil
		}
		text, err := os.ReadFile(flag.Value.String())
		if err != nil {
			return "", fmt.Errorf("--%s: %w", s.flag(), err)
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	}
	if value, ok := lookupEnv(s.variable()); ok {
		return value, nil
	}
	if value, ok := file.get(s); ok {
		return value, nil
	}
	return s.fallback, nil
}

// postalYAML is a postal.yml. It is walked as a tree, since a decoder's errors may quote the passwords in it.
type postalYAML struct {
	root   *yaml.Node
	legacy bool
}

// readConfig reads the postal.yml that flag or environment name, or that is at its usual place; there it may be missing.
func readConfig(flags *pflag.FlagSet, lookupEnv func(string) (string, bool)) (*postalYAML, error) {
	named, err := flags.GetString("config")
	if err != nil {
		return nil, err
	}
	if variable, ok := lookupEnv(configVariable); ok && named == "" {
		named = variable
	}
	path := cmp.Or(named, defaultConfig)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && named == "" {
		return &postalYAML{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Postal's configuration: %w", err)
	}
	file, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

func parseConfig(text []byte) (*postalYAML, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		if at, ok := errors.AsType[*yaml.LoadError](err); ok {
			return nil, fmt.Errorf("not valid YAML near line %d (not shown, it may hold a password)", at.Mark.Line)
		}
		return nil, errors.New("not valid YAML")
	}
	file := &postalYAML{}
	if len(document.Content) > 0 {
		file.root = document.Content[0]
	}
	version := child(file.root, "version")
	switch {
	case version == nil || version.Value == "1":
		file.legacy = true
	case version.Value != "2":
		return nil, fmt.Errorf("version %q is unknown, Postal has 1 and 2", version.Value)
	}
	return file, nil
}

// get returns the setting's value and false if the file has none.
func (y *postalYAML) get(s setting) (string, bool) {
	name := s.name
	if y.legacy {
		old, ok := s.legacyName()
		if !ok {
			return "", false
		}
		name = old
	}
	value := child(child(y.root, s.group), name) // "" and null are not the same, as for Postal
	if value == nil || value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
		return "", false
	}
	return value.Value, true
}

// child returns the value of a mapping's key, the last one if it is there twice, as for Postal; nil if there is none.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	var value *yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			value = mapping.Content[i+1]
		}
	}
	return value
}

// port reads a TCP port.
func port(variable, value string) (uint16, error) {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s: %q is not a port, give a number from 1 to 65535", variable, value)
	}
	return uint16(n), nil
}
