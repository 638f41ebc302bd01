package faultstore_test

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestCounterCountsAndLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, slow := pair(t, 1, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
			return faultstore.Fault{Before: time.Second}
		}})
		c := faultstore.NewCounter(slow)
		began := time.Now()
		if err := c.Append(t.Context(), storetest.Grant("job", 2)); err != nil {
			t.Fatal(err)
		}
		if err := c.Append(t.Context(), storetest.Grant("job", 2)); !errors.Is(err, store.ErrConflict) {
			t.Errorf("Append() = %v, want ErrConflict", err)
		}
		if _, _, err := c.Tail(t.Context(), "job", 3); err != nil {
			t.Fatal(err)
		}
		want := map[faultstore.Op]int{faultstore.OpAppend: 2, faultstore.OpTail: 1}
		if got := c.Counts(); !maps.Equal(got, want) {
			t.Errorf("Counts() = %v, want %v", got, want)
		}
		log := c.Log()
		if len(log) != 3 {
			t.Fatalf("Log() has %d entries, want 3", len(log))
		}
		for i, e := range log {
			if at := began.Add(time.Duration(i) * time.Second); !e.Began.Equal(at) || !e.Ended.Equal(at.Add(time.Second)) {
				t.Errorf("Log()[%d] lasted from %v to %v, want from %v for 1s", i, e.Began, e.Ended, at)
			}
		}
		if e := log[1]; e.Op != faultstore.OpAppend || e.WorkerType != "job" || e.Seq != 2 || !errors.Is(e.Err, store.ErrConflict) {
			t.Errorf("Log()[1] = %+v, want the append that failed", e)
		}
		if e := log[2]; e.Op != faultstore.OpTail || e.Seq != 3 || e.Err != nil {
			t.Errorf("Log()[2] = %+v, want the tail with its limit", e)
		}
		c.Reset()
		if len(c.Counts()) != 0 || len(c.Log()) != 0 {
			t.Errorf("after Reset: Counts() = %v, Log() = %v, want none", c.Counts(), c.Log())
		}
	})
}
