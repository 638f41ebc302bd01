package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// A pause keeps workers from the slots that it was in force for. Once it was ended, nobody is paused.
func TestWhySaysUntilWhenAWorkerTypeWasPaused(t *testing.T) {
	l, c := flushed(t)
	l.Put(recordtest.Grant(1, -1, "b"))
	order := operate.Order{Kind: store.OrderPause, WorkerType: "export", For: time.Hour, InstanceID: "ann"}
	c.Set(recordtest.Minutes(3))
	if _, err := operate.On(l).Give(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Second) // An order begins after all that its giver's look may have taken.
	says := func(at, want string) {
		t.Helper()
		got, err := whyOf(t, l, "", at, "")
		if got = strings.Join(strings.Fields(got), " "); err != nil || !strings.Contains(got, want) {
			t.Errorf("why --at %q = %s, %v, want %q", at, got, err, want)
		}
	}
	says("", "The worker type is paused by ann at 12:03:00Z, until 13:03:00Z.")
	says("2026-03-02T12:31:00Z", "Nobody has claimed the slot from 12:30:00Z to 12:35:00Z yet. The worker type is paused by ann")
	says("2026-03-02T13:31:00Z", "Claims open shortly before it begins")
	c.Set(recordtest.Minutes(4))
	if _, err := operate.On(l).End(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Second)
	says("", "The worker type was paused by ann at 12:03:00Z, until 12:04:00Z.")
	says("2026-03-02T12:31:00Z", "Claims open shortly before it begins")
}
