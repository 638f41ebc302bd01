package mongo

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Error codes by which a server refuses an insert because of what the collection is.
// The names are MongoDB's, and so are the replies: testdata and tests have them as
// recorded from MongoDB 5.0.7.
const (
	codeBadValue          = 2
	codeValidationFailure = 121
	codeNotOnView         = 166
)

// collectionFlaws are the reasons why a collection of a name is unfit, by its entry in
// listCollections.
func collectionFlaws(name string, raw bson.Raw) (flaws []storekit.Flaw) {
	is := func(check, what, remedy string) {
		flaws = append(flaws, storekit.Flaw{Check: check, What: name + " is " + what, Remedy: remedy})
	}
	if kind, ok := raw.Lookup("type").StringValueOK(); ok && kind != "collection" {
		is(CheckCollection, "a "+kind, "use a plain collection")
	}
	if capped, _ := raw.Lookup("options", "capped").BooleanOK(); capped {
		is(CheckCollection, "capped, and would delete records by itself", "use a plain collection")
	}
	if validates(raw) {
		is(CheckCollection, "given a validator, which may keep records out", "remove it with collMod (validator: {})")
	}
	if _, err := raw.LookupErr("options", "expireAfterSeconds"); err == nil {
		is(store.CheckExpiry, "set to expire its documents (expireAfterSeconds), and would delete the newest record", "use a plain collection")
	}
	if _, err := raw.LookupErr("options", "clusteredIndex"); err == nil {
		is(CheckCollection, "clustered, which is made to expire documents, and wasn't tested", "use a plain collection")
	}
	if locale, ok := raw.Lookup("options", "collation", "locale").StringValueOK(); ok && locale != "simple" {
		is(CheckCollection, "created with collation "+locale+", which takes different keys for one", "use the simple collation")
	}
	return flaws
}

// validates reports whether the collection has a validator that refuses documents.
func validates(raw bson.Raw) bool {
	rules, ok := raw.Lookup("options", "validator").DocumentOK()
	if !ok || len(rules) <= 5 { // An empty document.
		return false
	}
	level, _ := raw.Lookup("options", "validationLevel").StringValueOK()
	action, _ := raw.Lookup("options", "validationAction").StringValueOK()
	return level != "off" && action != "warn"
}

// unfitReply is the refusal that a reply to an insert amounts to, or nil. It shows what
// the collection is where rights are missing to list it.
func unfitReply(err error, code int) error {
	switch code {
	case codeValidationFailure:
		return fmt.Errorf("%w: the collection's validator keeps records out: remove it", store.ErrRefused)
	case codeNotOnView:
		return fmt.Errorf("%w: this is a view: use a plain collection", store.ErrRefused)
	case codeBadValue:
		// Other values are bad, too. This is the text for a missing time field since 5.0.
		if strings.Contains(err.Error(), "must be present and contain a valid BSON UTC datetime value") {
			return fmt.Errorf("%w: this is a time series: use a plain collection", store.ErrRefused)
		}
	case codeDuplicate, codeDuplicateOnUpdate:
		if index, foreign := foreignIndex(err); foreign {
			// The key is free, and another index keeps the record out.
			return fmt.Errorf("%w: the unique index %s keeps records out: drop it", store.ErrRefused, index)
		}
	}
	return nil
}

// foreignIndex names the index of a duplicate key, if it isn't that of _id. Since MongoDB
// 4.4 the reply says which fields the index has (keyPattern, SERVER-4637). Older servers,
// and others that speak the protocol, name it in the text, or don't name it.
func foreignIndex(err error) (index string, foreign bool) {
	if fields := keyPattern(err); len(fields) > 0 {
		return "over " + strings.Join(fields, ", "), len(fields) > 1 || fields[0] != fieldID
	}
	_, index, named := strings.Cut(err.Error(), " index: ")
	if !named || isKey.MatchString(index) {
		return "", false
	}
	index, _, _ = strings.Cut(index, " dup key")
	return fmt.Sprintf("%.80q", index), true
}

// keyPattern are the fields of the index in which a key was taken already, if the server
// says so.
func keyPattern(err error) (fields []string) {
	var replies []bson.Raw
	if we, ok := errors.AsType[mongo.WriteException](err); ok {
		for _, e := range we.WriteErrors {
			replies = append(replies, e.Raw)
		}
	} else if ce, ok := errors.AsType[mongo.CommandError](err); ok {
		replies = append(replies, ce.Raw)
	}
	for _, raw := range replies {
		pattern, _ := raw.Lookup("keyPattern").DocumentOK()
		elements, _ := pattern.Elements()
		for _, e := range elements {
			fields = append(fields, e.Key())
		}
	}
	return fields
}

// isKey matches what follows "index: " in the text of a duplicate key, if that is the index of the
// key. Not all servers name an index, and old ones put the collection before it. The name of
// another may have spaces.
var isKey = regexp.MustCompile(`^(?:\S+\.\S+\.\$)?_id_(?: dup key| collation: |[]),:;"'}]|$)`)
