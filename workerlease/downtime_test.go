package workerlease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// logOf runs workers on a ledger, by one client each or by a common one, and returns what slog has got by a time.
func logOf(t *testing.T, l store.Ledger, workers int, until time.Duration) string {
	t.Helper()
	var text bytes.Buffer
	client := workerlease.NewClient(l, workerlease.ClientOptions{Roster: true, Observer: event.LogTo(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{
		Level:       slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return map[bool]slog.Attr{false: a}[a.Key == slog.TimeKey] },
	})))})
	for n := range workers {
		o := named("a", 0)
		o.WorkerType, o.LeaseInterval = fmt.Sprint("job-", n), time.Minute
		start(t, setup{client: client, Options: o})
	}
	at(until)
	return text.String()
}

// saying are those of a log with a text.
func saying(log, text string) (found []string) {
	for _, line := range strings.Split(log, "\n") {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func TestAnOutageHasOneLineWhenItBeginsAndOneWhenItEnds(t *testing.T) {
	down := errors.New("no connection")
	for _, workers := range []int{1, 5} {
		bubble(t, fmt.Sprint(workers, " workers"), func(t *testing.T) {
			log := logOf(t, faulty(t, during(150*time.Second, 300*time.Second, faultstore.Fault{Effect: faultstore.Dropped, Err: down})), workers, 8*time.Minute)
			if got := saying(log, "no connection"); len(got) != 1 || !strings.HasPrefix(got[0], "level=WARN") {
				t.Errorf("an outage of %d workers was logged as %q, want one warning", workers, got)
			}
			ends := saying(log, "store works again")
			if len(ends) != workers { // Each says what it cost.
				t.Fatalf("the end was logged as %q, want one line of each worker that missed slots", ends)
			}
			for _, line := range ends {
				if !strings.HasPrefix(line, "level=WARN") || strings.Contains(line, "missed=0") || !strings.Contains(line, "took=2m") {
					t.Errorf("the end = %s, want how long it took, and the slots that were missed", line)
				}
			}
		})
	}
}

func TestTheEndOfAnOutageThatCostNothingIsOneLine(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		log := logOf(t, faulty(t, during(110*time.Second, 119*time.Second, faultstore.Fault{Effect: faultstore.Dropped, Err: errors.New("no connection")})), 5, 4*time.Minute)
		if got := saying(log, "no connection"); len(got) != 1 {
			t.Errorf("it was logged as %q, want one warning", got)
		}
		if got := saying(log, "store works again"); len(got) != 1 || !strings.HasPrefix(got[0], "level=INFO") || !strings.Contains(got[0], "missed=0 lapsed=0") {
			t.Errorf("the end was logged as %q, want one line", got)
		}
	})
}

func TestEachOutageThatEndsALeaseSaysSo(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		o := slotted("a", 0, 5*time.Minute, 8*time.Second)
		l := faulty(t, func(c faultstore.Call) faultstore.Fault {
			now := since(time.Now())
			if now > 6*time.Minute && now < 6*time.Minute+12*time.Second || now > 16*time.Minute && now < 16*time.Minute+12*time.Second {
				return faultstore.Failure()
			}
			return faultstore.Fault{}
		})
		w := start(t, setup{ledger: l, Options: o})
		at(20 * time.Minute)
		got := observed[event.StoreRecovered](w)
		if len(got) != 2 || got[0].Lapsed != 1 || got[1].Lapsed != 1 || got[1].Took > 14*time.Second || got[1].Took < 5*time.Second {
			t.Errorf("StoreRecovered = %+v, want one after each outage, with a lease that it ended", got)
		}
	})
}

// The store shows its time and its records, and takes no appends: each slot brings another denial.
func TestARightThatIsMissingForDaysIsToldOnceWithWhatToDo(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		log := logOf(t, faulty(t, during(0, 48*time.Hour, faultstore.Fault{Effect: faultstore.Dropped, Err: errors.Join(store.ErrDenied, store.ErrNotStored)}, faultstore.OpAppend)), 1, 6*time.Hour)
		if got := saying(log, "store failed"); len(got) != 1 || !strings.Contains(got[0], "try=\"check user, password or keys") {
			t.Errorf("it was logged as %q, want one line with what to do", got)
		}
		if got := saying(log, "store works again"); len(got) != 0 {
			t.Errorf("%q was logged, want nothing: it doesn't", got)
		}
	})
}

// Another trouble than that which was told is no part of it.
func TestAnOutageBesideAMissingRightIsTold(t *testing.T) {
	for name, second := range map[string]error{"of another meaning": errors.New("no connection"), "of the same": store.ErrDenied} {
		bubble(t, name, func(t *testing.T) {
			l := faulty(t, func(c faultstore.Call) faultstore.Fault {
				now := since(time.Now())
				switch {
				case c.Op == faultstore.OpAppend:
					return denied
				case now > 30*time.Minute && now < 40*time.Minute:
					return faultstore.Fault{Effect: faultstore.Dropped, Err: second}
				}
				return faultstore.Fault{}
			})
			log := logOf(t, l, 1, time.Hour)
			if got := saying(log, "store failed"); len(got) < 2 || len(got) > 4 {
				t.Errorf("it was logged as %q, want each of the two when it begins", got)
			}
		})
	}
}

func TestTheDefaultLogHasTheEndOfAnOutage(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		text := logged(t)
		l := faulty(t, during(110*time.Second, 119*time.Second, faultstore.Fault{Effect: faultstore.Dropped, Err: errors.New("no connection")}))
		w, err := workerlease.StartTask(t.Context(), l, workerlease.Options{WorkerType: "job", LeaseInterval: time.Minute}, func(context.Context, workerlease.Lease) error { return nil })
		must(t, err)
		at(3 * time.Minute)
		must(t, w.StopLeasing(t.Context()))
		if failed, works := saying(text.String(), "store failed"), saying(text.String(), "store works again"); len(failed) != 1 || len(works) != 1 || len(saying(text.String(), "level=")) != 2 {
			t.Errorf("the log = %s, want the beginning and the end of the outage alone", text.String())
		}
	})
}

// The holder loses its lease in the outage, and slots pass after that.
func TestSlotsThatAHolderLosesInAnOutageAreCounted(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := faulty(t, during(2*time.Minute+20*time.Second, 5*time.Minute+10*time.Second, faultstore.Fault{Effect: faultstore.Dropped, Err: errors.New("down")}))
		o := slotted("a", 0, time.Minute, 10*time.Second)
		w := start(t, setup{ledger: l, Options: o})
		at(7 * time.Minute)
		over := observed[event.StoreRecovered](w)
		if len(over) != 1 || over[0].Missed != 2 || over[0].Lapsed != 1 || w.Status().Missed != 2 {
			t.Errorf("observed %+v, and %d missed, want an outage that cost a lease and the two slots after it", over, w.Status().Missed)
		}
	})
}

// A holder's append fails, and others have the slots after that: it appends nothing for long.
func TestAnOutageIsOverWhenOthersAppend(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner, link := cut(t)
		a := start(t, setup{ledger: link, Options: slotted("a", 5, time.Minute, 10*time.Second)})
		at(2*time.Minute + 5*time.Second)
		start(t, setup{ledger: inner, Options: slotted("b", 0, time.Minute, 10*time.Second)})
		link.Break(faultstore.BlackHole(faultstore.Dropped))
		at(2*time.Minute + 40*time.Second)
		link.Mend()
		at(5 * time.Minute)
		if failed, over := observed[event.Unknown](a), observed[event.StoreRecovered](a); len(failed) == 0 || len(over) != 1 || over[0].Lapsed != 1 {
			t.Errorf("observed %d appends that failed, and %+v, want an outage that is over, and cost a lease", len(failed), over)
		}
	})
}

// One worker alone is denied, or stands by and is cut off, while others work: for it the store isn't well again, and no slot is missed.
func TestWhatOthersDoSaysNothingOfADenial(t *testing.T) {
	options := func(name string, priority int) workerlease.Options {
		return slotted(name, priority, time.Minute, 10*time.Second)
	}
	bubble(t, "denied", func(t *testing.T) {
		inner, _ := cut(t)
		denied := struck(t, inner.Handle(), during(3*time.Minute, ever, faultstore.Fault{Effect: faultstore.Dropped, Err: store.ErrDenied}, faultstore.OpAppend))
		a := start(t, setup{ledger: denied, Options: options("a", 0)})
		start(t, setup{ledger: inner, Options: options("b", 5)})
		at(time.Hour)
		told := 0
		for _, e := range observed[event.Unknown](a) {
			if !e.Again {
				told++
			}
		}
		if over := observed[event.StoreRecovered](a); told != 1 || len(over) != 0 {
			t.Errorf("a denial is told %d times, and is over %d times, want once and never", told, len(over))
		}
	})
	bubble(t, "cut off", func(t *testing.T) {
		inner, link := cut(t)
		start(t, setup{ledger: inner, Options: options("a", 0)})
		b := start(t, setup{ledger: link, Options: options("b", 5)})
		at(12*time.Minute + 25*time.Second)
		link.Break(faultstore.Down())
		at(17*time.Minute + 25*time.Second)
		link.Mend()
		at(20 * time.Minute)
		if missed := observed[event.Missed](b); len(missed) != 0 {
			t.Errorf("a standby that was cut off tells %+v, want nothing: the holder had them", missed)
		}
	})
}
