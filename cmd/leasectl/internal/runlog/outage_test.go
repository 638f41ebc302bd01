package runlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
)

func TestAnOutageIsLoggedWhenItBeginsAndEveryMinute(t *testing.T) {
	var stderr bytes.Buffer
	j := New(Options{To: &stderr, Level: zapcore.InfoLevel, Worker: worker})
	now := noon
	j.now = func() time.Time { return now }
	fail := func(err error) { j.Observe(workerlease.StoreFailed{Worker: worker, Operation: "now", Err: err}) }
	down := errors.New("refused")
	fail(down)
	for range 20 {
		now = now.Add(10 * time.Second)
		fail(down)
	}
	if j.Reached() {
		t.Error("Reached() = true while the store is down")
	}
	j.Observe(workerlease.ClockSample{Worker: worker, StoreTime: noon})
	if !j.Reached() {
		t.Error("Reached() = false when the store has answered")
	}
	fail(store.ErrDenied)
	var got []string
	for line := range strings.Lines(stderr.String()) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		got = append(got, strings.Join(strings.Fields(rest), " "))
	}
	want := []string{
		"WARN store not reached yet: refused; trying on",
		"WARN store still unreachable: refused", "WARN store still unreachable: refused", "WARN store still unreachable: refused",
		"INFO ready: store time 2026-03-02T12:00:00.000Z ± 0s", "INFO store: reached again",
		"WARN store: now failed: access denied; leasectl ends if that lasts for 10s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

func TestADenialAtTheStartSaysWhatItIsWaitedFor(t *testing.T) {
	for err, want := range map[error]string{
		store.ErrDenied:  "store not reached yet: access denied; leasectl ends if that lasts for 10s\n",
		store.ErrRefused: "store not reached yet: store refused\n",
	} {
		var stderr bytes.Buffer
		New(Options{To: &stderr, Level: zapcore.InfoLevel, Worker: worker}).Observe(workerlease.StoreFailed{Worker: worker, Operation: "check", Err: err})
		if !strings.HasSuffix(stderr.String(), want) {
			t.Errorf("the log of %v at the start: %q, want %q", err, stderr.String(), want)
		}
	}
}

func TestALedgerThatWasRemovedIsNotWaitedFor(t *testing.T) {
	var stderr bytes.Buffer
	j := New(Options{To: &stderr, Level: zapcore.InfoLevel, Worker: worker})
	j.Observe(workerlease.ClockSample{Worker: worker, StoreTime: noon})
	j.Observe(workerlease.StoreFailed{Worker: worker, Operation: "now", Err: fmt.Errorf("%w: removed (%w)", sqlite.ErrUnshared, store.ErrMissing)})
	if want := "; leasectl ends in 10s\n"; !strings.HasSuffix(stderr.String(), want) {
		t.Errorf("the log of a ledger that was removed: %q, want %q at its end", stderr.String(), want)
	}
}

// Anybody may ask MongoDB for the time.
func TestADeniedReadIsLoggedOnceWhileTheTimeIsTold(t *testing.T) {
	var stderr bytes.Buffer
	j := New(Options{To: &stderr, Level: zapcore.InfoLevel, Worker: worker})
	now := noon
	j.now = func() time.Time { return now }
	sampled := func() { j.Observe(workerlease.ClockSample{Worker: worker, StoreTime: noon}) }
	sampled()
	for range 4 {
		j.Observe(workerlease.StoreFailed{Worker: worker, Operation: "tail", Err: fmt.Errorf("tail: %w", store.ErrDenied)})
		sampled()
		now = now.Add(reminder / 2)
	}
	j.Observe(workerlease.HolderChanged{Worker: worker})
	j.Failing()
	j.Observe(workerlease.StoreFailed{Worker: worker, Operation: "get", Err: fmt.Errorf("get: %w", context.Canceled)})
	var got []string
	for line := range strings.Lines(stderr.String()) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		got = append(got, strings.Join(strings.Fields(rest), " "))
	}
	want := []string{
		"INFO ready: store time 2026-03-02T12:00:00.000Z ± 0s",
		"WARN store: tail failed: tail: access denied; leasectl ends if that lasts for 10s", "WARN store still fails: tail: access denied",
		"INFO store: reached again",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
