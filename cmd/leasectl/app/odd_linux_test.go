package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// waiting puts a worker into the roster that waits for its first slot.
func waiting(t *testing.T, l store.Ledger) {
	t.Helper()
	now := storeTime(t, l)
	p := store.Presence{
		WorkerType: "nightly", ID: "1", Client: "1", InstanceID: "worker-a", Host: "vm-1", Schedule: "every 24h", Phase: store.PhaseCandidate,
		Since: now, Seen: now, Next: now.Add(4 * time.Minute),
	}
	must(t, l.(store.Roster).Attend(t.Context(), []store.Presence{p}))
}

// All commands know a worker type that has workers and no records, or only those of orders.
func TestATypeThatWaitsForItsFirstSlotIsKnown(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		must(t, l.Append(t.Context(), recordtest.Grant(1, 0, "worker-b")))
		waiting(t, l)
		if got := leasectl(t, env, "__completeNoDesc", "why", "--worker-type", "n"); !strings.HasPrefix(got.stdout, "nightly\n") {
			t.Errorf("completing a worker type = %+v, want that of the roster", got)
		}
		wants := func(args, want string) {
			if got := leasectl(t, env, append(strings.Fields(args), "--worker-type", "nightly")...); got.code != exit.OK || !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), want) {
				t.Errorf("leasectl %s = %+v, want %q", args, got, want)
			}
		}
		wants("inspect slots", "no records yet")
		wants("why", "no worker has claimed a slot yet, or the store has lost them")
		wants("pause --for 1h --reason upgrade", "paused until")
		wants("status", "every 24h")
		wants("next", "every 24h")
		wants("why", "The worker type is paused by "+operator())
		if got := leasectl(t, env, "next", "--worker-type", "nightly", "--output", "json"); got.code != exit.OK {
			t.Errorf("leasectl next = %+v", got)
		}
	})
}

// longSlot puts a lease of a day into a ledger, whose holder reads no order before the next slot.
func longSlot(t *testing.T, l store.Ledger) {
	t.Helper()
	r := recordtest.Grant(1, 0, "worker-b")
	r.SlotStart = storeTime(t, l).Truncate(time.Hour).Add(-time.Hour)
	r.SlotEnd, r.Schedule = r.SlotStart.Add(24*time.Hour), fmt.Sprintf("cron 0 %d * * *", r.SlotStart.Hour()) // It ends in 22 h at least.
	r.WindowStart, r.WindowEnd, r.ReadAt, r.Token = r.SlotStart, r.SlotEnd, r.SlotStart.Add(-time.Second), r.SlotStart.UnixMilli()
	must(t, l.Append(t.Context(), r))
}

// An order that ends before a holder reads it isn't promised to be heard.
func TestAnOrderThatEndsTooSoonToBeHeardSaysSo(t *testing.T) {
	l, storeArg := newLedger(t)
	longSlot(t, l)
	env := []string{"LEASECTL_STORE=" + storeArg}
	for args, want := range map[string]string{
		"release --reason stuck":     "the holder may not read it: the order ends before the holder's turn for the next slot, by ",
		"pause --for 1h --now --yes": "the holder may not read it: the order ends before the holder's turn for the next slot, by ",
		"pause --for 720h":           "the holder reads it at its turn for the next slot",
	} {
		var g lever.Given
		got := leasectl(t, env, append(strings.Fields(args), "--worker-type", "export", "--output", "json")...)
		if err := json.Unmarshal([]byte(got.stdout), &g); got.code != exit.OK || err != nil || !strings.HasPrefix(g.Heard, want) || (g.HeardBy == "") != strings.Contains(want, "may not") {
			t.Errorf("leasectl %s = %+v, %v, want %q", args, got, errors.Unwrap(err), want)
		}
	}
}

// A name that nobody has may be mistyped, and what wasn't in force can't be ended.
func TestLeversWarnOfWhatIsOdd(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		longSlot(t, l)
		waiting(t, l)
		for _, c := range [][2]string{
			{"pause --worker-type exprot --for 1h", "warning: no worker of exprot is known: it had no slot yet, and the roster has nobody of it; there are also export"},
			{"prefer --worker-type exprot --instance-id worker-a --for 1h", "warning: no worker of exprot is known: it had no slot yet, and the roster has nobody of it; there are also export"},
			{"pause --worker-type nightly --for 1h", ""},
			{"prefer --worker-type export --instance-id wroker-b --for 1h", "warning: no worker wroker-b of export is known"},
			{"prefer --worker-type export --instance-id worker-b --for 1h", ""},
			{"prefer --worker-type nightly --instance-id worker-a --for 1h", ""},
			{"drain --worker-type nightly --host wm-1 --for 1h", "warning: the roster has no worker of nightly on host wm-1"},
			{"drain --worker-type nightly --host vm-1 --for 1h", ""},
			{"resume --worker-type nightly --kind drain --host vm-2", "warning: no drain of vm-2 was in force: nothing has changed"},
			{"resume --worker-type nightly", ""},
			{"resume --worker-type nightly", "warning: no pause was in force: nothing has changed"},
		} {
			got := leasectl(t, env, strings.Fields(c[0])...)
			if got.code != exit.OK || strings.Contains(got.stdout, "warning: ") != (c[1] != "") || !strings.Contains(got.stdout, c[1]) {
				t.Errorf("leasectl %s = %+v, want %q", c[0], got, c[1])
			}
		}
	})
}

// A release that has been obeyed, or came too late, is not shown as one that is about to be.
func TestStatusForgetsTheReleaseOfALeaseThatIsOver(t *testing.T) {
	l, storeArg := newLedger(t)
	longSlot(t, l)
	env := []string{"LEASECTL_STORE=" + storeArg}
	status := func() string { return leasectl(t, env, "status").stdout }
	if got := leasectl(t, env, "release", "--worker-type", "export"); got.code != exit.OK || !strings.Contains(status(), "asks for the release") {
		t.Fatalf("leasectl release = %+v, and status %s", got, status())
	}
	order, err := l.Get(t.Context(), "export", 2)
	must(t, err)
	released := recordtest.Release(order, 3, storeTime(t, l))
	released.Orders = order.Orders
	must(t, l.Append(t.Context(), released))
	if got := status(); strings.Contains(got, "asks for the release") {
		t.Errorf("leasectl status = %s, want no release of what was released", got)
	}
}
