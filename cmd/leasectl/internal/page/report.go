package page

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Bounds of a report: the slots of all worker types together, about; those of each at least; and for how many of these it says
// why they came out as they did.
const (
	allSlots   = 20_000
	leastSlots = 20
	mostWhys   = 20
)

// unwell are the states of slots for which a report says why.
var unwell = []history.State{history.Missed, history.Failed, history.Skipped, history.Free, history.Overridden}

// Report writes the page with what is known now, which it shows without a server.
func (p *Page) Report(ctx context.Context, to io.Writer) error {
	r, err := p.Open(ctx, "")
	if err != nil {
		return err
	}
	types, at := map[string]typeJSON{}, time.Now().UTC().Format(time.RFC3339)
	status, err := r.Status(ctx, "", mostRecent)
	last := max(leastSlots, min(mostSlots, allSlots/max(len(status.Types), 1)))
	for i := 0; err == nil && i < len(status.Types); i++ {
		name := status.Types[i].WorkerType
		types[name], err = frozenOf(ctx, r, name, last)
		if errors.Is(err, store.ErrRefused) { // Another program has overwritten that ledger: its state says so.
			types[name], err = typeJSON{Slots: inspect.Snapshot{WorkerType: name, Slots: []inspect.Slot{}, Warning: err.Error()}, Workers: inspect.Crew{Workers: []inspect.Worker{}}}, nil
		}
	}
	if err != nil {
		return err
	}
	crew, err := workersOf(ctx, r, "")
	if err != nil {
		return err
	}
	found, err := p.health(ctx)
	if err != nil {
		return err
	}
	// The names don't change.
	frozen := p.encode(map[string]any{"api": API, "version": p.o.Version, "at": at, "status": status, "types": types, "workers": crew, "health": found})
	// A file has no headers. What opens it may obey this all the same.
	policy, _, _ := strings.Cut(p.policy, "; frame-ancestors")
	_, err = strings.NewReplacer("<style>", `<meta http-equiv="Content-Security-Policy" content="`+policy+`"><style>`,
		"<script>", `<script type="application/json" id="frozen">`+string(frozen)+"</script>\n<script>").WriteString(to, string(html))
	return err
}

// frozenOf is a worker type with the reasons for some of its slots.
func frozenOf(ctx context.Context, r inspect.Reader, workerType string, last int) (f typeJSON, err error) {
	if f, err = typeOf(ctx, r, workerType, last); err != nil {
		return f, err
	}
	f.Whys = map[string]inspect.Answer{}
	for _, s := range slices.Backward(f.Slots.Slots) {
		at, parsed := inspect.ParseMoment(s.SlotStart)
		if parsed != nil || !s.Silent && !slices.Contains(unwell, s.State) || len(f.Whys) >= mostWhys {
			continue
		}
		if f.Whys[s.SlotStart], err = r.Why(ctx, workerType, inspect.Question{At: at}); err != nil {
			return f, err
		}
	}
	return f, nil
}
