package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// A run that was asked for goes on after its lease, since the task ignores its context. The worker runs no slot beside it: others do.
func TestNoSlotIsRunBesideATriggersTask(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		synctest.Test(t, func(t *testing.T) {
			f := &triggered{t: t, ledger: memory.New(memory.Options{})}
			runs := map[string]int{}
			f.job = func(_ context.Context, r ran) error {
				f.mu.Lock()
				runs[r.by]++
				if runs[r.by] > 1 {
					t.Errorf("%s runs %v beside another one", r.by, r.slot)
				}
				f.mu.Unlock()
				if r.triggered && r.by == "a" {
					time.Sleep(80 * time.Minute)
				}
				f.mu.Lock()
				runs[r.by]--
				f.mu.Unlock()
				return nil
			}
			defer f.stop()
			f.startOn(f.ledger, names, func(_ int, o *workerlease.Options) { o.Job.Timeout = time.Minute })
			boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
			time.Sleep(time.Until(boundary.Add(-30 * time.Minute)))
			f.trigger(time.Minute)
			time.Sleep(100 * time.Minute)
			_, slotted := f.all()
			slots := map[time.Time]string{}
			for _, r := range slotted {
				slots[r.slot.Start] = r.by
			}
			if by := slots[boundary.UTC()]; len(names) > 1 && by != "b" {
				t.Errorf("the slot that began meanwhile was run by %q, want b", by)
			}
			if by := slots[boundary.Add(time.Hour).UTC()]; by != "a" {
				t.Errorf("the slot after the run was run by %q, want a", by)
			}
		})
	}
}

// Whoever may append to the ledger may write any order. Those that no operator can have given change nothing.
func TestOddTriggersAreLeftAlone(t *testing.T) {
	at := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, o := range map[string]store.Order{
		"as long as all time": {Kind: store.OrderTrigger, At: at(2), Until: at(9999)},
		"of centuries":        {Kind: store.OrderTrigger, At: at(1709), Until: at(2003)},
		"shorter than a run":  {Kind: store.OrderTrigger, At: at(2000).Add(2*time.Hour + time.Minute), Until: at(2000).Add(2*time.Hour + time.Minute + time.Millisecond)},
	} {
		bubble(t, name, func(t *testing.T) {
			f := &triggered{t: t, ledger: memory.New(memory.Options{})}
			counter := faultstore.NewCounter(f.ledger)
			defer f.stop()
			f.startOn(counter, []string{"a", "b"}, nil)
			time.Sleep(2 * time.Hour)
			time.Sleep(time.Second)
			f.appendOrder(o)
			counter.Reset()
			time.Sleep(2 * time.Hour)
			asked, slotted := f.all()
			if len(asked) != 0 || len(slotted) != 5 || counter.Counts()[faultstore.OpTail] > 20 {
				t.Errorf("in 2 h after %v the workers have read %v, and have run %v for it, and slots %v", o, counter.Counts(), asked, slotted)
			}
		})
	}
}

// appendOrder appends an order as any program may.
func (f *triggered) appendOrder(o store.Order) {
	f.t.Helper()
	orders, err := store.FormatOrders([]store.Order{o})
	must(f.t, err)
	f.appendOrders(o, orders)
}

// appendOrders appends a record of an order that shows these ones.
func (f *triggered) appendOrders(o store.Order, orders string) {
	f.t.Helper()
	records, _, err := f.ledger.Tail(f.t.Context(), "report", 1)
	must(f.t, err)
	text, err := o.MarshalJSON()
	must(f.t, err)
	r := records[0]
	r.Seq, r.Kind, r.WindowStart, r.Orders, r.Metadata = r.Seq+1, store.KindOrder, r.WindowEnd, orders, string(text)
	must(f.t, f.ledger.Append(f.t.Context(), r))
}

// A trigger is taken back while its run goes on, or is over then and left out of an order's record. Nobody takes the
// worker for idle, and what comes of the run is recorded.
func TestARunGoesOnThoughItsTriggerIsTakenBack(t *testing.T) {
	for name, order := range map[string]func(d operate.Desk) (store.Record, error){
		"taken back": func(d operate.Desk) (store.Record, error) {
			return d.End(context.Background(), operate.Order{WorkerType: "report", Kind: store.OrderTrigger})
		},
		"over": func(d operate.Desk) (store.Record, error) {
			return d.Give(context.Background(), operate.Order{WorkerType: "report", Kind: store.OrderPrefer, Target: "b", For: time.Hour})
		},
	} {
		bubble(t, name, func(t *testing.T) {
			f := taking(t, 20*time.Minute)
			defer f.stop()
			f.startOn(f.ledger, []string{"a", "b"}, nil)
			time.Sleep(65 * time.Minute)
			given, _ := f.trigger(10 * time.Minute).Order()
			time.Sleep(12 * time.Minute)
			if _, err := order(operate.On(f.ledger)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			o := operate.Order{WorkerType: "report", Kind: store.OrderTrigger, IfIdle: true}
			if _, err := operate.On(f.ledger).Give(t.Context(), o); !errors.Is(err, operate.ErrBusy) {
				t.Errorf("a trigger that is to wait for no run, while one goes on: %v, want ErrBusy", err)
			}
			time.Sleep(10 * time.Minute)
			said := f.said(func(o store.Outcome) bool { return o.SlotStart.Equal(given.At) })
			if asked, _ := f.all(); said != 1 || len(asked) != 1 {
				t.Errorf("ran %d times, and %d records say what came of it, want 1 of each", len(asked), said)
			}
		})
	}
}

// Another program changes the orders while the run of a trigger goes on: it gives the trigger another end, or writes others that are
// too long as workers write them. What came of the run is recorded once by each worker that made it, not over and over.
func TestARunIsRecordedOnceWhateverBecomesOfItsTrigger(t *testing.T) {
	long := strings.Repeat("\u2028", 80) // that workers write in twice as many bytes
	for name, c := range map[string]struct {
		change func(o store.Order) string
		most   int // runs; where no worker can take the trigger out of the orders, each makes one
	}{
		"another end": {func(o store.Order) string {
			o.Until = o.Until.Add(10 * time.Minute)
			text, _ := store.FormatOrders([]store.Order{o})
			return text
		}, 1},
		"long orders": {func(o store.Order) string {
			text, _ := store.FormatOrders([]store.Order{o})
			for i := range 4 {
				text = fmt.Sprintf(`{"kind":"note","target":"%d","at":%q,"until":%q,"why":%q},`, i, store.Format(o.At), store.Format(o.Until), "why") + strings.TrimPrefix(text, "[")
				text = "[" + strings.ReplaceAll(text, `"why":"why"`, `"why":"`+long+`"`)
			}
			return text
		}, 2},
	} {
		bubble(t, name, func(t *testing.T) {
			f := taking(t, 2*time.Minute)
			defer f.stop()
			slow := faultstore.New(f.ledger, faultstore.Options{Plan: eachCall(faultstore.Fault{After: 3 * time.Millisecond})})
			f.startOn(slow, []string{"a", "b"}, nil)
			time.Sleep(70 * time.Minute)
			given, _ := f.trigger(10 * time.Minute).Order()
			time.Sleep(time.Minute)
			f.appendOrders(given, c.change(given))
			time.Sleep(30 * time.Minute)
			said := f.said(func(o store.Outcome) bool { return o.SlotStart.Equal(given.At) })
			if asked, _ := f.all(); said != len(asked) || len(asked) < 1 || len(asked) > c.most {
				t.Errorf("ran %d times, and %d records say what came of it, want %d or fewer, and as many", len(asked), said, c.most)
			}
		})
	}
}
