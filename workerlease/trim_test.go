package workerlease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestTrimDeletesWhatALaterRecordShowsToBeOld(t *testing.T) {
	minute := func(l *memory.Ledger, seq int64) {
		at := time.Duration(seq) * time.Minute
		r := planted(seq, at, at+time.Minute)
		r.Claim, r.ReadAt = store.Key("job", seq), t0.Add(at)
		l.Put(r)
	}
	for name, c := range map[string]struct {
		first, last int64 // records, of one minute each
		now         time.Duration
		retention   time.Duration
		want        int64 // the oldest that is left
	}{
		"all but those of the retention":       {1, 2000, 2001 * time.Minute, 24 * time.Hour, 561},
		"no record of the newest 100":          {1, 300, 9000 * time.Minute, 2 * time.Hour, 200},
		"what workers have left, and no more":  {500, 2000, 2001 * time.Minute, 24 * time.Hour, 561},
		"nothing that is young":                {1, 1000, 1001 * time.Minute, 24 * time.Hour, 1},
		"nothing of a short ledger":            {1, 90, 9000 * time.Minute, 2 * time.Hour, 1},
		"all that is old of a ledger at rest":  {1, 3000, 300000 * time.Minute, 24 * time.Hour, 2900},
		"by the default retention of 24 hours": {1, 2000, 2001 * time.Minute, 0, 561},
	} {
		bubble(t, name, func(t *testing.T) {
			l := memory.New(memory.Options{})
			for seq := c.first; seq <= c.last; seq++ {
				minute(l, seq)
			}
			at(c.now)
			counter := faultstore.NewCounter(l.Handle())
			n, err := workerlease.Trim(t.Context(), counter, workerlease.TrimOptions{WorkerType: "job", Retention: c.retention})
			if got := records(t, l)[0].Seq; err != nil || got != c.want || int64(n) != c.want-c.first {
				t.Errorf("Trim() = %d, %v, the oldest record is %d, want %d", n, err, got, c.want)
			}
			if gets := counter.Counts()[faultstore.OpGet]; gets > 14 {
				t.Errorf("%d records were read one by one, want a search", gets)
			}
		})
	}
	bubble(t, "poison keeps the records below it", func(t *testing.T) {
		l := memory.New(memory.Options{})
		for seq := int64(1); seq < 2000; seq++ {
			minute(l, seq)
		}
		l.Put(store.Record{WorkerType: "job", Seq: 2000, Defect: "not a record"})
		at(3000 * time.Minute)
		if n, err := workerlease.Trim(t.Context(), l, workerlease.TrimOptions{WorkerType: "job"}); n != 0 || !errors.Is(err, workerlease.ErrUnfitHead) {
			t.Errorf("Trim() = %d, %v, want ErrUnfitHead", n, err)
		}
	})
	bubble(t, "bad options", func(t *testing.T) {
		l := memory.New(memory.Options{})
		for _, o := range []workerlease.TrimOptions{{}, {WorkerType: "job", Retention: time.Hour}} {
			if _, err := workerlease.Trim(t.Context(), l, o); !errors.Is(err, workerlease.ErrOptions) {
				t.Errorf("Trim(%+v) = %v, want ErrOptions", o, err)
			}
		}
	})
}

// Members of a group join its lease, although an order stands above the grant.
func TestAGroupJoinsUnderAnOrder(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := memory.New(memory.Options{})
		member := func(name string) *worker {
			o := named(name, 0)
			o.Group = "eu"
			return start(t, setup{Options: o, ledger: l.Handle()})
		}
		a := member("a")
		at(6 * time.Minute)
		pause(t, l.Handle(), 20*time.Minute, false)
		b := member("b")
		at(7 * time.Minute)
		if len(a.history()) != 1 || len(b.history()) != 1 || b.turn(t, 0).lease.Token != a.turn(t, 0).lease.Token {
			t.Errorf("a had %d leases and b %d, want one that they share", len(a.history()), len(b.history()))
		}
		if _, err := workerlease.AskRelease(t.Context(), l.Handle(), workerlease.ReleaseOptions{WorkerType: "job"}); !errors.Is(err, workerlease.ErrNoTerm) {
			t.Errorf("AskRelease() of a group's lease = %v, want ErrNoTerm", err)
		}
		at(11 * time.Minute)
		if a.Status().Holding || b.Status().Holding || a.turn(t, 0).ended == 0 {
			t.Error("the group holds the lease in a pause")
		}
	})
}
