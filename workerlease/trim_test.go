package workerlease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
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
			n, err := operate.On(counter).Trim(t.Context(), "job", c.retention)
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
		if n, err := operate.On(l).Trim(t.Context(), "job", 0); n != 0 || !errors.Is(err, operate.ErrUnfitHead) {
			t.Errorf("Trim() = %d, %v, want ErrUnfitHead", n, err)
		}
	})
	bubble(t, "bad options", func(t *testing.T) {
		l := memory.New(memory.Options{})
		for name, retention := range map[string]time.Duration{"": 0, "job": time.Hour} {
			if _, err := operate.On(l).Trim(t.Context(), name, retention); !errors.Is(err, workerlease.ErrOptions) {
				t.Errorf("Trim(%q, %v) = %v, want ErrOptions", name, retention, err)
			}
		}
	})
}

func TestRecordsAreTrimmedAlsoWhenGrantsAndReleasesAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(memory.Options{})
		for range 600 {
			w := start(t, setup{ledger: l, Options: workerlease.Options{LeaseInterval: time.Minute, Retention: 2 * time.Hour}})
			time.Sleep(time.Minute + 10*time.Second)
			must(t, w.StopLeasing(t.Context()))
			time.Sleep(50 * time.Second)
		}
		if head, left := newest(t, l).Seq, len(records(t, l)); head < 1000 || left > int(head)/2 {
			t.Errorf("%d records are left at seq %d", left, head)
		}
	})
}

// On Monday the ledger of a nightly job still knows what failed on Friday, however many records its runs have made.
func TestMondayKnowsOfFriday(t *testing.T) {
	bubble(t, "a job of three hours", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := perSlot("a", 0)
		o.LeaseInterval, o.FailoverWithin, o.Job.MaxAttempts = 24*time.Hour, 0, 1
		first := 24 * time.Hour
		j := &job{do: func(_ context.Context, l workerlease.Lease, _ int) error {
			time.Sleep(3 * time.Hour)
			if since(l.Slot.Start) == first {
				return errors.New("disk full")
			}
			return nil
		}}
		runs(t, ledger.Handle(), o, j.run)
		at(4*24*time.Hour + 9*time.Hour)
		if o := toldOf(t, ledger, first); len(o) != 1 || o[0].Error != "disk full" {
			t.Errorf("the ledger tells %+v of the slot that failed, and its oldest record is of that from %v", o, since(records(t, ledger)[0].SlotStart))
		}
	})
}

func TestAJobsRecordsAreKeptForDaysAndSlots(t *testing.T) {
	const day = 24 * time.Hour
	for slot, want := range map[time.Duration]time.Duration{time.Second: day, time.Minute: 2000 * time.Minute, time.Hour: 14 * day, day: 100 * day} {
		if got := workerlease.JobRetention(slot); got != want {
			t.Errorf("JobRetention(%v) = %v, want %v", slot, got, want)
		}
	}
}
