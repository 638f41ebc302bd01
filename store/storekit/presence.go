package storekit

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// MaxPresence is the size of the largest document of a presence that is read, in bytes: no presence that passes its Check is
// larger. A roster may hold anything, and each worker reads it. So a store must leave out what is larger before it comes to the
// worker, or reads no more of it than that, and it must read a roster piece by piece.
const MaxPresence = 128 << 10

// attendance is the document of a presence: its fields, and an id that may stand in a URL. "." may not.
type attendance struct {
	store.Presence

	Key    string           `json:"id"`
	Labels []document.Label `json:"labels,omitempty"`
	// A double holds every duration below 104 days, and others to the microsecond.
	Offset      float64 `json:"offset,omitzero"`
	Uncertainty float64 `json:"uncertainty,omitzero"`
}

// PresenceKey is the id of a presence's document.
func PresenceKey(workerType, id string) string { return workerType + ":" + id }

// EncodePresence is the JSON document of a presence that passed its Check.
func EncodePresence(p store.Presence) ([]byte, error) {
	p = p.Truncated()
	return json.Marshal(attendance{p, PresenceKey(p.WorkerType, p.ID), document.List(p.Labels), float64(p.Offset), float64(p.Uncertainty)})
}

// EncodePresences are the JSON documents of presences, in their order, or why one of them is invalid.
func EncodePresences(presences []store.Presence) ([][]byte, error) {
	texts := make([][]byte, len(presences))
	for i, p := range presences {
		if err := p.Check(); err != nil {
			return nil, err
		}
		text, err := EncodePresence(p)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return texts, nil
}

// DecodePresence reads a JSON document, or reports false if it is none of a presence that passes its Check.
func DecodePresence(raw []byte) (store.Presence, bool) {
	if len(raw) > MaxPresence {
		return store.Presence{}, false
	}
	var a attendance
	err := json.Unmarshal(raw, &a)
	p := a.Presence
	if id, ok := strings.CutPrefix(a.Key, PresenceKey(p.WorkerType, "")); ok {
		p.ID = id
	}
	p.Labels = document.Map(a.Labels)
	var offsetErr, uncertaintyErr error
	p.Offset, offsetErr = nanoseconds(a.Offset)
	p.Uncertainty, uncertaintyErr = nanoseconds(a.Uncertainty)
	if errors.Join(err, offsetErr, uncertaintyErr, p.Check()) != nil {
		return store.Presence{}, false
	}
	return p.Truncated(), true
}

// nanoseconds is a duration that was a double.
func nanoseconds(f float64) (time.Duration, error) {
	switch {
	case f != math.Trunc(f):
		return 0, errors.New("is no whole number")
	case f >= math.MaxInt64:
		return math.MaxInt64, nil
	case f <= math.MinInt64:
		return math.MinInt64, nil
	}
	return time.Duration(f), nil
}
