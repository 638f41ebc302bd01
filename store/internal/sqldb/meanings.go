package sqldb

import (
	"fmt"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
	"github.com/slotlease/slotlease/store/storekit"
)

// What errors mean with which a server has rolled a statement back.
var (
	Undone  = storekit.Meaning{NotStored: true}
	Passing = storekit.Meaning{NotStored: true, Sound: true}
	Missing = storekit.Meaning{NotStored: true, Is: store.ErrMissing}
	Refused = storekit.Meaning{NotStored: true, Is: store.ErrRefused}
	Denied  = storekit.Meaning{NotStored: true, Is: store.ErrDenied, Sound: true}
)

// Mistaken is what an error means about a statement that the server can't parse, or that names what isn't there. No waiting
// helps, and nothing is wrong with the server.
func Mistaken(number any, message string) storekit.Meaning {
	m := Refused
	m.Text = fmt.Sprintf("the statement or the tables are at fault, not the server: error %v, %s", number, message)
	m.Remedy = fault.OfMistake
	return m
}
