package inspect

import (
	"context"
	"io"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// glimpse is what each look at a ledger finds, whatever it is about.
type glimpse struct {
	at      time.Time // the store's
	store   string
	warning string // of the store, or empty
	charges workerlease.Charges
}

func (s glimpse) warns() string { return s.warning }

func (s *glimpse) common() *glimpse { return s }

// now takes the store's time.
func (s *glimpse) now(ctx context.Context, l store.Ledger) error {
	stamp, err := l.Now(ctx)
	s.at = stamp.Time
	return err
}

// pointer is one to a view.
type pointer[V any] interface {
	*V
	common() *glimpse
}

// glimpses makes a function that looks at a ledger, within the time-out of each look, by take.
func glimpses[V any, P pointer[V]](ctx context.Context, t storeuri.Target, l store.Ledger, o Options, take func(ctx context.Context, l *charges.Ledger, found P) error) func() (V, error) {
	if o.Watch {
		l = NewCache(l, 0, 0)
	}
	ledger := charges.New(l)
	return func() (found V, err error) {
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		of := P(&found).common()
		of.store = t.Shown
		err = take(limited, ledger, &found)
		of.charges = ledger.Charges()
		if of.warning == "" {
			of.warning = store.Describe(l).Warning()
		}
		return found, advice.ForStore(t, err)
	}
}

// framed is a text below its title, with the cost of the look, if it had one. A frame of a picture has the warning,
// too, which is told beside it otherwise.
func (s glimpse) framed(subject, text string, frame bool) string {
	if frame && s.warning != "" {
		text += "\nwarning: " + display.Line(s.warning) + "\n"
	}
	return s.titled(subject) + "\n\n" + text + s.cost()
}

func (s glimpse) cost() string {
	if cost := charges.Text(s.charges); cost != "" {
		return "\nlooking at it cost " + cost + "\n"
	}
	return ""
}

// titled names what is shown, the store and the time, in one line if it fits.
func (s glimpse) titled(subject string) string {
	place, at := display.Flat(s.store), "store time "+store.Format(s.at)
	if title := subject + " · " + place + " · " + at; display.Width(title) <= 80 {
		return title
	}
	return subject + " · " + at + "\n" + place
}

// writeJSON writes the JSON form of a view.
func writeJSON(w io.Writer, v view, indent bool) error { return display.WriteJSON(w, v.json(), indent) }
