package provisioner

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mailretention/mailretention/internal/sqlname"
)

// TimeKind says how a column holds a time.
type TimeKind string

// The kinds of times.
const (
	UnixSeconds TimeKind = ""         // a number: seconds since 1970, fractions allowed
	DateTime    TimeKind = "datetime" // a DATETIME in UTC
)

// Schema says where things are in a message database. The zero Schema is [PostalSchema]; any other is taken as it
// stands and must name RawPrefix, RawLayout and RawColumns.
type Schema struct {
	RawPrefix  string        // what the name of each raw table begins with: "raw-"
	RawLayout  string        // a Go time layout with a day's precision for the rest of the name: "2006-01-02"
	RawColumns string        // the column definitions of a raw table, the text inside the parentheses of CREATE TABLE; a table that lacks one is not dropped
	Sizes      SizesTable    // the bookkeeping
	Messages   MessagesTable // the message table
	Children   []ChildTable  // tables whose rows belong to a message and go with it
	Base       []BaseTable   // tables that Provision creates beside the bookkeeping
}

// SizesTable says where the sizes of the raw tables are booked: a row for each raw table. If there is no such table,
// Provision creates it with a unique key on the name. An existing one needs no unique key; where it has none, it needs
// a column id, by which one of several rows of a table is chosen, and should have an index on the name: without one every
// booking reads all rows, and two that make the same row at once may both.
type SizesTable struct {
	Name  string // "": there is no bookkeeping, sizes come from storage
	Table string // column: the raw table's name
	Bytes string // column: bytes of mail in it
}

// MessagesTable says where the messages are that point into the raw tables.
type MessagesTable struct {
	Name     string   // "": there are only raw tables
	ID       string   // column: the primary key, an integer
	Time     string   // column: when the message came; NULL and 0 are no time, and such a message stays
	TimeKind TimeKind // what Time holds
	RawTable string   // column: the name of the raw table, NULL once it is gone
	RawIndex string   // the index that begins with RawTable; "": the server chooses
	Size     string   // column: bytes of raw mail; "": there is none
	Held     string   // column: not 0 while the message is held and keeps its row and its mail; "": there is none
	Clear    []string // columns to set to NULL, beside RawTable, when the raw mail goes
	Probe    string   // a condition true of every row, by which an index leads to old rows; "": old rows are found by a walk
}

// ChildTable is a table whose rows belong to a message.
type ChildTable struct {
	Name      string
	MessageID string // column: the message's id, indexed
}

// BaseTable is a table that Provision creates where it is missing.
type BaseTable struct {
	Name    string
	Columns string // the text inside the parentheses of CREATE TABLE
}

func (s Schema) isZero() bool { return reflect.ValueOf(s).IsZero() }

// check returns all faults of s.
func (s Schema) check() error {
	faults := []error{s.checkRaw()}
	tables := map[string]bool{}
	table := func(field, name string) {
		faults = append(faults, fault(field, sqlname.Check(name)), s.checkNoDay(field, name))
		if tables[strings.ToLower(name)] {
			faults = append(faults, fmt.Errorf("provisioner: Schema.%s: %q is named twice", field, name))
		}
		tables[strings.ToLower(name)] = true
	}
	if s.Sizes.Name != "" {
		table("Sizes.Name", s.Sizes.Name)
		faults = append(faults, fault("Sizes.Table", sqlname.Check(s.Sizes.Table)), fault("Sizes.Bytes", sqlname.Check(s.Sizes.Bytes)))
	}
	faults = append(faults, s.Messages.check())
	if s.Messages.Name != "" {
		table("Messages.Name", s.Messages.Name)
	}
	for i, child := range s.Children {
		table(fmt.Sprintf("Children[%d].Name", i), child.Name)
		faults = append(faults, fault(fmt.Sprintf("Children[%d].MessageID", i), sqlname.Check(child.MessageID)))
	}
	if len(s.Children) > 0 && s.Messages.Name == "" {
		faults = append(faults, errors.New("provisioner: Schema.Children: without a message table nothing has children, name Schema.Messages"))
	}
	faults = append(faults, s.checkBase())
	return errors.Join(faults...)
}

func (s Schema) checkRaw() error {
	var faults []error
	if err := s.days().Check(); err != nil {
		faults = append(faults, fmt.Errorf("provisioner: Schema.RawPrefix, RawLayout: %w", err))
	}
	if s.RawColumns == "" {
		faults = append(faults, errors.New("provisioner: Schema.RawColumns: no columns, give the column definitions of a raw table"))
	}
	return errors.Join(faults...)
}

// checkNoDay refuses a table that would be taken for a day's raw table, and dropped.
func (s Schema) checkNoDay(field, name string) error {
	if _, day := s.days().Parse(name); day {
		return fmt.Errorf("provisioner: Schema.%s: %q is the name of a raw table, choose another prefix", field, name)
	}
	return nil
}

func (m MessagesTable) check() error {
	if m.Name == "" {
		return nil
	}
	faults := []error{
		fault("Messages.ID", sqlname.Check(m.ID)),
		fault("Messages.Time", sqlname.Check(m.Time)),
		fault("Messages.RawTable", sqlname.Check(m.RawTable)),
		fault("Messages.RawIndex", checkOptional(m.RawIndex)),
		fault("Messages.Size", checkOptional(m.Size)),
		fault("Messages.Held", checkOptional(m.Held)),
	}
	for i, name := range m.Clear {
		faults = append(faults, fault(fmt.Sprintf("Messages.Clear[%d]", i), sqlname.Check(name)))
	}
	if m.TimeKind != UnixSeconds && m.TimeKind != DateTime {
		faults = append(faults, fmt.Errorf("provisioner: Schema.Messages.TimeKind: %q is unknown, use %q or %q", m.TimeKind, UnixSeconds, DateTime))
	}
	return errors.Join(faults...)
}

func (s Schema) checkBase() error {
	var faults []error
	names := map[string]bool{}
	for i, base := range s.Base {
		field := fmt.Sprintf("Base[%d]", i)
		faults = append(faults, fault(field+".Name", sqlname.Check(base.Name)), s.checkNoDay(field+".Name", base.Name))
		if names[base.Name] {
			faults = append(faults, fmt.Errorf("provisioner: Schema.%s: %q is named twice", field, base.Name))
		}
		names[base.Name] = true
		if base.Columns == "" {
			faults = append(faults, fmt.Errorf("provisioner: Schema.%s.Columns: no columns for %q, give its column definitions", field, base.Name))
		}
	}
	return errors.Join(faults...)
}

func (s Schema) days() sqlname.Days { return sqlname.Days{Prefix: s.RawPrefix, Layout: s.RawLayout} }

// fault names the field of a Schema that err concerns; nil if err is.
func fault(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("provisioner: Schema.%s: %w", field, err)
}

// checkOptional is sqlname.Check for a name that may be left out.
func checkOptional(name string) error {
	if name == "" {
		return nil
	}
	return sqlname.Check(name)
}

// mentions reports whether a table is one that s names.
func (s Schema) mentions(table string) bool {
	named := func(name string) bool { return name == table }
	return named(s.Sizes.Name) || named(s.Messages.Name) ||
		slices.ContainsFunc(s.Children, func(c ChildTable) bool { return named(c.Name) }) ||
		slices.ContainsFunc(s.Base, func(b BaseTable) bool { return named(b.Name) })
}
