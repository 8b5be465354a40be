package provisioner

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// family sorts the types of columns: what is written to one type of a family reads the same from another.
type family string

const (
	number   family = "a number"
	text     family = "text"
	binary   family = "bytes"
	dateTime family = "a DATETIME"
)

// shape is what a table must have so that it can be used.
type shape struct {
	table   string
	columns []column
}

type column struct {
	name     string
	families []family // one of them; none: any type will do
}

func need(name string, families ...family) column { return column{name, families} }

// shapes are those of the tables that statements here name.
func (s Schema) shapes() []shape {
	var list []shape
	if s.Sizes.Name != "" {
		list = append(list, shape{s.Sizes.Name, []column{need(s.Sizes.Table, text, binary), need(s.Sizes.Bytes, number)}})
	}
	if s.Messages.Name != "" {
		list = append(list, s.Messages.shape())
	}
	for _, child := range s.Children {
		list = append(list, shape{child.Name, []column{need(child.MessageID, number)}})
	}
	return list
}

// rawShape is that of a day's raw table.
func (s Schema) rawShape(table string) shape { return shape{table, columnsOf(s.RawColumns)} }

func (m MessagesTable) shape() shape {
	columns := []column{need(m.ID, number), need(m.Time, number), need(m.RawTable, text, binary)}
	if m.TimeKind == DateTime {
		columns[1] = need(m.Time, dateTime)
	}
	if m.Size != "" {
		columns = append(columns, need(m.Size, number, text))
	}
	if m.Held != "" {
		columns = append(columns, need(m.Held, number))
	}
	for _, name := range m.Clear {
		columns = append(columns, need(name))
	}
	return shape{m.Name, columns}
}

// compare returns [ErrSchemaMismatch] with all differences unless the table is as it must be.
func (p *Provisioner) compare(ctx context.Context, on querier, want shape) error {
	have := map[string]string{}
	var name, kind string
	var other any
	err := each(ctx, on, showColumns(p.Ident(want.table)), nil, []any{&name, &kind, &other, &other, &other, &other}, func() {
		have[strings.ToLower(name)] = kind
	})
	if err != nil {
		return fmt.Errorf("columns of %q: %w", want.table, err)
	}
	var differences []string
	for _, c := range want.columns {
		kind, found := have[strings.ToLower(c.name)]
		if !found {
			differences = append(differences, fmt.Sprintf("column %q is missing", c.name))
		} else if len(c.families) > 0 && !slices.Contains(c.families, familyOf(kind)) {
			differences = append(differences, fmt.Sprintf("column %q is %s, not %s", c.name, kind, c.families[0]))
		}
	}
	if len(differences) > 0 {
		return fmt.Errorf("%w: table %q: %s", ErrSchemaMismatch, want.table, strings.Join(differences, ", "))
	}
	return nil
}

// familyOf returns the family of a type, as it stands in a column's definition or in SHOW COLUMNS; "" if it has no relatives.
func familyOf(kind string) family {
	switch word, _ := cutWord(strings.ToLower(kind)); word {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint", "bit", "bool", "boolean", "serial",
		"decimal", "dec", "numeric", "fixed", "float", "double", "real":
		return number
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json":
		return text
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return binary
	case "datetime":
		return dateTime
	}
	return ""
}

// columnsOf reads the columns from definitions, which are the text inside the parentheses of CREATE TABLE.
func columnsOf(definitions string) []column {
	var columns []column
	for _, definition := range split(definitions) {
		name, kind := cutName(strings.TrimSpace(definition))
		switch known := familyOf(kind); {
		case name == "":
		case known == "":
			columns = append(columns, need(name))
		case known == text && asBytes(kind):
			columns = append(columns, need(name, text, binary))
		default:
			columns = append(columns, need(name, known))
		}
	}
	return columns
}

// asBytes reports whether a type of text may be one of bytes in truth: CHAR BYTE and CHARACTER SET binary are.
func asBytes(kind string) bool {
	kind = strings.ToLower(kind)
	return strings.Contains(kind, "byte") || strings.Contains(kind, "binary")
}

// cutName cuts a column's definition after its name; that of a key, a constraint or a period has none.
func cutName(definition string) (name, rest string) {
	if strings.HasPrefix(definition, "`") || strings.HasPrefix(definition, `"`) {
		quote, quoted := definition[:1], definition[1:]
		end := strings.Index(strings.ReplaceAll(quoted, quote+quote, "??"), quote)
		if end < 0 {
			return "", ""
		}
		return strings.ReplaceAll(quoted[:end], quote+quote, quote), quoted[end+1:]
	}
	name, rest = cutWord(definition)
	switch strings.ToUpper(name) {
	case "PRIMARY", "KEY", "INDEX", "UNIQUE", "CONSTRAINT", "FOREIGN", "FULLTEXT", "SPATIAL", "CHECK":
		return "", ""
	}
	switch second, _ := cutWord(rest); strings.ToUpper(second) {
	case "FOR", "INDEX", "KEY": // PERIOD FOR, VECTOR INDEX: no type begins with these
		return "", ""
	}
	return name, rest
}

// cutWord cuts s after its first word.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	end := strings.IndexFunc(s, func(r rune) bool { return r == '(' || unicode.IsSpace(r) })
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

// What split tells apart. A comment that some servers read is one too: what it holds isn't on all of them.
const (
	comment = `/\*.*?\*/|#[^\n]*|--(?:[^\S\n][^\n]*)?`
	literal = `'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|` + "`[^`]*`?" // a doubled quote ends one and begins the next
)

// split cuts definitions at the commas that stand neither in parentheses nor in quotes, and leaves their comments out.
func split(definitions string) []string {
	tokens := regexp.MustCompile("(?s)(" + comment + ")|" + literal + "|.")
	parts, depth := []string{""}, 0
	for _, token := range tokens.FindAllStringSubmatch(definitions, -1) {
		switch {
		case token[1] != "":
			token[0] = " "
		case token[0] == "(":
			depth++
		case token[0] == ")":
			depth--
		case token[0] == "," && depth == 0:
			parts = append(parts, "")
			continue
		}
		parts[len(parts)-1] += token[0]
	}
	return parts
}
