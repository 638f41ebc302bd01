package main

import (
	"errors"
	"io"
	"log"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/workerlease"
)

func TestAnotherWorkerGoesOnFromTheStoredPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out, clock.New()); err != nil {
			t.Fatal(err)
		}
		const want = `anna stores position 1, balance 100
anna stores position 2, balance 70
anna stores position 3, balance 75
ben stores position 4, balance 25
ben stores position 5, balance 35
ben stores position 6, balance 42
`
		if out.String() != want {
			t.Errorf("output:\n%s\nwant:\n%s", &out, want)
		}
	})
}

func TestTheViewRefusesAnOldToken(t *testing.T) {
	v := &view{out: log.New(io.Discard, "", 0), stored: make(chan workerlease.Lease, 2)}
	if err := v.store(workerlease.Lease{Token: 2}, state{4, 25}); err != nil {
		t.Fatal(err)
	}
	if err := v.store(workerlease.Lease{Token: 1}, state{4, 99}); !errors.Is(err, errStale) {
		t.Errorf("store with token 1 after 2 = %v, want %v", err, errStale)
	}
	if got := v.load(); got != (state{4, 25}) {
		t.Errorf("load() = %+v, want what token 2 has stored", got)
	}
}
