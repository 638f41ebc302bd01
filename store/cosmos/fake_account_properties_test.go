package cosmos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A dedicated gateway has a cache, from which it answers what it was asked before,
// for up to five minutes, unless the request says otherwise.
func TestReadsAskForStrongConsistencyWhereTheAccountHasItAndForNothingOld(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{"Strong": "Strong", "BoundedStaleness": "", "Session": "", "ConsistentPrefix": "", "Eventual": "", "": ""} {
		t.Run("default "+level, bubbled(func(t *testing.T, f *fakeAccount) {
			f.properties["userConsistencyPolicy"] = map[string]any{"defaultConsistencyLevel": level}
			l := f.open(t, Options{})
			_, _ = l.Get(within(t, time.Second), "job", 1)
			_, _, _ = l.Tail(within(t, time.Second), "job", 1)
			_, _ = l.Now(within(t, time.Second))
			asked := 0
			for _, r := range f.log {
				if r.op != "read" && r.op != "query" {
					continue
				}
				asked++
				documenttest.Equal(t, "the consistency asked for by a "+r.op, r.Header.Get("X-Ms-Consistency-Level"), want)
				documenttest.Equal(t, "whether the cache is bypassed by a "+r.op, r.Header.Get("X-Ms-Dedicatedgateway-Bypass-Cache"), "true")
			}
			if got := l.Account().Consistency; asked != 3 || got != level {
				t.Errorf("%d reads, Account().Consistency = %q, want 3 and %q", asked, got, level)
			}
		}))
	}
}

func TestConsistencyThatIsLoweredIsNoticedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = func(r *fakeRequest) *fakeReply {
			f.mu.Lock()
			defer f.mu.Unlock()
			if policy, _ := f.properties["userConsistencyPolicy"].(map[string]any); r.Header.Get("X-Ms-Consistency-Level") == "Strong" && policy["defaultConsistencyLevel"] != "Strong" {
				return refusal(400, "The consistency level Strong is not allowed")
			}
			return nil
		}
		l := f.used(t, Options{})
		f.set(func() {
			f.properties["userConsistencyPolicy"] = map[string]any{"defaultConsistencyLevel": "Session"}
		})
		_, _, err := l.Tail(within(t, time.Second), "job", 1)
		wantSentinel(t, "Tail()", err, nil)
		records, stamp, err := l.Tail(within(t, time.Second), "job", 1)
		if err != nil || len(records) != 1 || stamp.Granularity != time.Millisecond {
			t.Errorf("Tail() again = %d records, %+v, %v, want one, with a stamp in ms", len(records), stamp, err)
		}
		if w := l.Account().Warning(); !strings.Contains(w, "Session") {
			t.Errorf("Account().Warning() = %q, want it to say Session", w)
		}
	})
}

func TestReadsGoWhereWritesGo(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.properties["writableLocations"] = regions("West Europe")
		f.properties["readableLocations"] = regions("North Europe", "West Europe", "East US")
		l := f.open(t, Options{})
		_ = l.Append(within(t, time.Second), storetest.Grant("job", 1))
		_, _ = l.Get(within(t, time.Second), "job", 1)
		_, _, _ = l.Tail(within(t, time.Second), "job", 1)
		for _, r := range f.log {
			want := "acct-westeurope.documents.azure.com:443"
			if r.op == "account" {
				want = "acct.documents.azure.com:443"
			}
			if r.URL.Host != want {
				t.Errorf("a %s went to %s, want %s", r.op, r.URL.Host, want)
			}
		}
		if got := l.Account(); strings.Join(got.ReadRegions, ", ") != "North Europe, West Europe, East US" || got.MultipleWrites || !got.Verified {
			t.Errorf("Account() = %+v, want all regions as the account names them", got)
		}
	})
}

func TestWhatAnAccountIsWarnedOfAndLosesInAFailover(t *testing.T) {
	t.Parallel()
	one, two := []string{"A"}, []string{"A", "B"}
	for name, c := range map[string]struct {
		a        Account
		warns    []string
		failover string
	}{
		"strong":                     {Account{Verified: true, Consistency: "Strong", ReadRegions: two}, nil, "All survive: the account has 2 regions"},
		"bounded, one region":        {Account{Verified: true, Consistency: "BoundedStaleness", ReadRegions: one}, nil, "no other takes over"},
		"bounded, two regions":       {Account{Verified: true, Consistency: "BoundedStaleness", ReadRegions: two}, []string{"2 regions", "failover"}, "up to the configured staleness"},
		"session, one region":        {Account{Verified: true, Consistency: "Session", ReadRegions: one}, []string{"Session", "stale"}, "no other takes over"},
		"eventual, two regions":      {Account{Verified: true, Consistency: "Eventual", ReadRegions: two}, []string{"Eventual", "stale", "; ", "failover"}, "up to about 15 minutes: the account has 2 regions"},
		"partitions that fail over":  {Account{Verified: true, Consistency: "Strong", ReadRegions: two, PartitionFailover: true}, []string{"single partitions fail over", "appends of their worker types fail"}, "All survive"},
		"it says nothing of regions": {Account{}, []string{"several regions", "unknown"}, "isn't known yet"},
	} {
		c.a.ReadAt = time.Now()
		got := c.a.Warning()
		if len(c.warns) == 0 && got != "" || strings.Contains(got, "\n") {
			t.Errorf("%s: Warning() = %q, want none", name, got)
		}
		for _, part := range c.warns {
			if !strings.Contains(got, part) {
				t.Errorf("%s: Warning() = %q, want %q in it", name, got, part)
			}
		}
		if got := c.a.durability().Failover; !strings.Contains(got, c.failover) {
			t.Errorf("%s: Failover = %q, want %q in it", name, got, c.failover)
		}
	}
	unread := Account{}
	if w, d := unread.Warning(), unread.durability(); w != "" || !strings.Contains(d.Failover, "isn't known yet") {
		t.Errorf("of an account that was never read: Warning() = %q, Failover = %q", w, d.Failover)
	}
}

func TestMachineWithAWrongClockCanLease(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, 0, 48 * time.Hour} {
		for _, status := range []int{401, 403} {
			t.Run(ahead.String(), bubbled(func(t *testing.T, f *fakeAccount) {
				f.ahead = ahead
				f.hook = f.signedInTime(status)
				l := f.open(t, Options{})
				for seq := range int64(3) {
					wantErr(t, fmt.Sprintf("Append() with a clock that is off by %v", ahead), l.Append(within(t, time.Second), storetest.Grant("job", seq+1)), nil)
					time.Sleep(11 * time.Minute)
				}
			}))
		}
	}
}

func TestWrongKeyIsTriedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = func(*fakeRequest) *fakeReply { return refusal(401, "wrong key") }
		wantSentinel(t, "Append()", f.open(t, Options{}).Append(within(t, time.Minute), storetest.Grant("job", 1)), store.ErrDenied)
		documenttest.Equal(t, "requests sent", len(f.log), 1)
	})
}
