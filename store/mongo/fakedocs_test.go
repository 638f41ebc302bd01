package mongo

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// change is what one write did: an insert of a document, the deletion of one, or nothing, which
// is how a new primary begins its term. Two changes are the same only if their addresses are.
type change struct {
	term int
	ns   string
	id   string
	doc  bson.Raw // nil: a deletion, or nothing
}

// documents are those of all collections, by namespace and by _id.
type documents map[string]map[string]bson.Raw

// documentsOf are the documents after some changes.
func documentsOf(log []*change) documents {
	d := documents{}
	for _, c := range log {
		d.apply(c)
	}
	return d
}

func (d documents) apply(c *change) {
	switch {
	case c.ns == "":
	case c.doc == nil:
		delete(d[c.ns], c.id)
	default:
		if d[c.ns] == nil {
			d[c.ns] = map[string]bson.Raw{}
		}
		if c.id != "" { // A collection is created by a change without an id.
			d[c.ns][c.id] = c.doc
		}
	}
}

// idOf is a document's _id with its type, so that no two ids of different types are equal.
func idOf(doc bson.Raw) string { return keyOf(doc.Lookup(fieldID)) }

func keyOf(id bson.RawValue) string { return string(rune(id.Type)) + string(id.Value) }

// find returns the documents of a collection that match a filter, in the order of their _id.
func (d documents) find(ns string, filter bson.Raw, descending bool, limit int64) []bson.Raw {
	var ids []bson.RawValue
	for _, doc := range d[ns] {
		if matches(doc, filter) {
			ids = append(ids, doc.Lookup(fieldID))
		}
	}
	slices.SortFunc(ids, func(a, b bson.RawValue) int {
		if descending {
			a, b = b, a
		}
		return compareIDs(a, b)
	})
	if limit > 0 && int64(len(ids)) > limit {
		ids = ids[:limit]
	}
	var found []bson.Raw
	for _, id := range ids {
		found = append(found, d[ns][keyOf(id)])
	}
	return found
}

// compareIDs orders strings by their bytes, as MongoDB does, and other types beside them.
func compareIDs(a, b bson.RawValue) int {
	if a.Type != b.Type {
		return int(a.Type) - int(b.Type)
	}
	return bytes.Compare(text(a), text(b))
}

// text is a value without its length.
func text(v bson.RawValue) []byte {
	if v.Type == bson.TypeString {
		return v.Value[4 : len(v.Value)-1]
	}
	return v.Value
}

// matches knows equality, $gt, $gte, $lt, $lte and $in on fields of the document itself. Like
// MongoDB, a comparison meets only values of its own type.
func matches(doc, filter bson.Raw) bool {
	elements, _ := filter.Elements()
	for _, e := range elements {
		got := doc.Lookup(e.Key())
		if ops, ok := e.Value().DocumentOK(); ok {
			all, _ := ops.Elements()
			if !slices.ContainsFunc(all, func(op bson.RawElement) bool { return !compares(got, op) }) {
				continue
			}
			return false
		}
		if !got.Equal(e.Value()) {
			return false
		}
	}
	return true
}

func compares(got bson.RawValue, op bson.RawElement) bool {
	want := op.Value()
	if op.Key() == "$in" {
		list, _ := want.Array().Values()
		return slices.ContainsFunc(list, got.Equal)
	}
	if got.Type != want.Type {
		return false
	}
	switch c := bytes.Compare(text(got), text(want)); op.Key() {
	case "$gt":
		return c > 0
	case "$gte":
		return c >= 0
	case "$lt":
		return c < 0
	case "$lte":
		return c <= 0
	}
	panic("the fake server doesn't know " + op.Key())
}
