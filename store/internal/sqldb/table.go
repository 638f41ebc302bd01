package sqldb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// AnotherTable is what to do about a table that can't be mended.
const AnotherTable = "use another table"

// Relation is a table, as the catalog has it.
type Relation struct {
	// Kind is what it is in place of a table; empty if it is one.
	Kind    string
	Columns []Column
	// Indexes are those that keep rows out, and Triggers and Constraints those that are enabled, as far as the user may know.
	Indexes               []Index
	Triggers, Constraints []string
}

// Column is one of a table, or what it must be.
type Column struct {
	Name string
	// Type is for people; Length is in bytes.
	Type   string
	Length int64
	// Odd is what it is besides, such as computed.
	Odd      string
	Required bool

	// Fits reports whether a column is as this one must be, and Why is what others do.
	Fits func(c Column) bool
	Why  string
}

// Index is one that keeps rows out; Key says that it is the ledger's key.
type Index struct {
	Name string
	Key  bool
}

// Names are names in a text.
func Names(all []string) string { return fmt.Sprintf("%.200s", strings.Join(all, ", ")) }

// TableFlaws are the reasons why the table of the records is unfit; none if there is no table.
func (c *Core[F]) TableFlaws(f F) []storekit.Flaw {
	r := f.Shared().Ledger
	flaws := &Flaws{Check: CheckTable, Of: "table " + c.Name() + " "}
	switch {
	case r == nil:
		return nil
	case r.Kind != "":
		flaws.Add(AnotherTable, "is a %s", r.Kind)
		return flaws.All
	}
	c.parts.Table(f, flaws)
	if len(r.Triggers) > 0 {
		flaws.AddTo(store.CheckConstraints, "drop them", "has triggers, which can change records or drop them: %s", Names(r.Triggers))
	}
	if len(r.Constraints) > 0 {
		flaws.AddTo(store.CheckConstraints, "drop them", "has constraints besides its key, which can keep records out: %s", Names(r.Constraints))
	}
	for _, column := range r.Columns {
		c.columnFlaws(flaws, column)
	}
	for _, rule := range c.parts.Columns {
		if !slices.ContainsFunc(r.Columns, func(column Column) bool { return column.Name == rule.Name }) {
			flaws.Add(AnotherTable, "has no column %s", rule.Name)
		}
	}
	if !slices.ContainsFunc(r.Indexes, func(x Index) bool { return x.Key }) {
		flaws.Add("ALTER TABLE … ADD PRIMARY KEY (worker_type, seq)",
			"has no primary key (worker_type, seq) of whole columns, or one that is checked only later")
	}
	for _, x := range r.Indexes {
		if !x.Key {
			flaws.AddTo(store.CheckConstraints, "drop it", "has a unique index besides its key, which keeps records out: %.120s", x.Name)
		}
	}
	return flaws.All
}

// columnFlaws are those of a column.
func (c *Core[F]) columnFlaws(flaws *Flaws, column Column) {
	i := slices.IndexFunc(c.parts.Columns, func(rule Column) bool { return column.Name == rule.Name })
	switch {
	case i >= 0 && column.Odd != "":
		flaws.Add(AnotherTable, "has the column %s, which is %.60s: it doesn't give back what was stored", column.Name, column.Odd)
	case i >= 0 && !c.parts.Columns[i].Fits(column):
		want := c.parts.Columns[i].Type + c.parts.Columns[i].Why
		flaws.Add(AnotherTable, "has the column %s of the type %.80s, must be %s", column.Name, column.Type, want)
	case i >= 0:
	case strings.Contains(column.Odd, "computed"):
		flaws.AddTo(store.CheckConstraints, "drop it", "has a column that is computed, and whose failure keeps records out: %.60q", column.Name)
	case column.Required:
		flaws.AddTo(store.CheckConstraints, "give it a default, or drop it",
			"has a column that records lack, and that must not be null: %.60q", column.Name)
	}
}
