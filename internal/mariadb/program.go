package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is a server's binary that runs on this machine.
type program struct {
	path  string
	root  string // where its packages are unpacked; "": installed
	mysql bool   // MySQL rather than MariaDB
}

var errMissing = errors.New("no MariaDB server on this machine: looked for mariadbd and mysqld in PATH, /usr/sbin, /usr/local/sbin and /usr/libexec; " +
	"install the package mariadb-server-core (or mariadb-server), or set MAILRETENTION_DSN to a server's DSN, such as root@tcp(127.0.0.1:3306)/")

// find returns the server that is installed, else the one of the distribution's packages.
func find(ctx context.Context) (program, error) {
	if p, ok := installed(ctx); ok {
		return p, nil
	}
	if ctx.Err() != nil {
		return program{}, context.Cause(ctx)
	}
	p, err := unpacked(ctx)
	if err != nil {
		return program{}, fmt.Errorf("%w; unpacking the distribution's package failed: %w", errMissing, err)
	}
	return p, nil
}

// installed looks into PATH and where servers are installed that an ordinary user's PATH doesn't have.
func installed(ctx context.Context) (program, bool) {
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin", "/usr/libexec")
	for _, name := range []string{"mariadbd", "mysqld"} {
		for _, dir := range dirs {
			if p, err := probe(ctx, filepath.Join(dir, name), ""); err == nil {
				return p, true
			}
		}
	}
	return program{}, false
}

// probe runs the binary, which shows that its libraries are there too, and asks which server it is.
func probe(ctx context.Context, path, root string) (program, error) {
	p := program{path: path, root: root}
	if _, err := os.Stat(path); err != nil {
		return p, err
	}
	version, err := p.command(ctx, "--no-defaults", "--version").Output()
	if err != nil {
		return p, fmt.Errorf("%s --version: %w", path, err)
	}
	p.mysql = !strings.Contains(string(version), "MariaDB")
	return p, nil
}

// command is the binary with its arguments and, when it is unpacked, with its libraries.
func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, args...)
	if p.root == "" {
		return cmd
	}
	var libraries []string
	for _, dir := range []string{"usr/lib", "lib"} {
		found, _ := filepath.Glob(filepath.Join(p.root, dir, "*-linux-*"))
		libraries = append(libraries, found...)
	}
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, string(filepath.ListSeparator)))
	return cmd
}

// base returns the arguments that every run on the data directory has.
func (p program) base(d directory) []string {
	args := []string{
		"--no-defaults", "--datadir=" + d.data(), "--tmpdir=" + d.temporary(),
		"--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", // fast, and safe but for a crash of the machine
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // else it refuses to run as root
	}
	if p.root != "" {
		args = append(args,
			"--basedir="+filepath.Join(p.root, "usr"),
			"--lc-messages-dir="+p.share(),
			"--plugin-dir="+filepath.Join(p.root, "usr/lib/mysql/plugin"))
	}
	return args
}

// share is the directory of the server's messages and SQL files.
func (p program) share() string {
	for _, name := range []string{"share/mariadb", "share/mysql"} {
		dir := filepath.Join(filepath.Dir(filepath.Dir(p.path)), name)
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	return ""
}
