package sqldb

import (
	"github.com/slotlease/slotlease/store"
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
