package storekit

import (
	"cmp"
	"errors"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// Unfit is why a server isn't used for a connection, or is no more, such as a standby.
type Unfit struct{ Why string }

func (e Unfit) Error() string { return e.Why }

// ConnectError is why there is no connection, for each host that was tried. Nothing was stored then.
type ConnectError struct{ Tried []error }

func (e ConnectError) Error() string {
	var texts []string
	for _, err := range e.Tried {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns what they are, and store.ErrNotStored.
func (e ConnectError) Unwrap() []error { return append([]error{store.ErrNotStored}, e.Tried...) }

// AllUnfit is why no server was used, if err is a ConnectError, and each host that was tried answered that it is unfit. A
// host that didn't answer may be the one that takes writes.
func AllUnfit(err error) (why Unfit, all bool) {
	c, ok := errors.AsType[ConnectError](err)
	if !ok {
		return Unfit{}, false
	}
	for _, one := range c.Tried {
		found, ok := errors.AsType[Unfit](one)
		if !ok {
			return Unfit{}, false
		}
		why = cmp.Or(why, found)
	}
	return why, len(c.Tried) > 0
}
