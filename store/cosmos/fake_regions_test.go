package cosmos

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// The hosts of two regions.
const (
	west  = "acct-westeurope.documents.azure.com:443"
	north = "acct-northeurope.documents.azure.com:443"
)

// failsOver makes an account of two regions whose write region changes before each append:
// it is read in the one, and written in the other. The first refuses the append, as a
// region does that takes no writes any more.
func (f *fakeAccount) failsOver() {
	f.properties["readableLocations"] = regions("West Europe", "North Europe")
	names, tried := []string{"West Europe", "North Europe"}, ""
	f.hook = on("create", func(r *fakeRequest) *fakeReply {
		f.mu.Lock()
		defer f.mu.Unlock()
		var id struct{ ID string }
		if err := json.Unmarshal([]byte(r.text), &id); err != nil || id.ID == tried {
			return nil
		}
		tried = id.ID
		names[0], names[1] = names[1], names[0]
		f.properties["writableLocations"] = regions(names[0])
		return refusal(http.StatusForbidden, "The requested operation cannot be performed at this region", headerSubstatus, substatusWriteForbidden)
	})
}

// observed is what a worker on an account saw in some minutes of slots of a minute.
type observed struct {
	leases  int
	samples map[string]int // by server
	jumps   int
	asked   int // for the time alone
}

func (f *fakeAccount) observe(t *testing.T, minutes int) observed {
	t.Helper()
	var mu sync.Mutex
	seen := observed{samples: map[string]int{}}
	o := event.ObserverFunc(func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e := e.(type) {
		case event.ClockSample:
			seen.samples[e.Server]++
		case event.ClockJump:
			seen.jumps++
		}
	})
	c := workerlease.NewClient(f.open(t, Options{}), workerlease.ClientOptions{Observer: o})
	w, err := c.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job", LeaseInterval: time.Minute}, workerlease.Callbacks{
		LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) {
			mu.Lock()
			seen.leases++
			mu.Unlock()
			<-ctx.Done()
		},
	})
	must(t, "StartLeasing()", err)
	time.Sleep(time.Duration(minutes) * time.Minute)
	must(t, "StopLeasing()", w.StopLeasing(within(t, time.Minute)))
	mu.Lock()
	defer mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.log {
		if strings.Contains(r.text, "SELECT VALUE GetCurrentTimestamp()") {
			seen.asked++
		}
	}
	return seen
}

func TestAChangeOfRegionBetweenReadsAndAppendsIsNoEpochAndCostsNoSample(t *testing.T) {
	const minutes = 30
	var still observed
	inBubble(t, func(t *testing.T, f *fakeAccount) { still = f.observe(t, minutes) })
	for _, apart := range []time.Duration{0, defaultSkew, -defaultSkew} {
		t.Run(apart.String(), bubbled(func(t *testing.T, f *fakeAccount) {
			f.apart = map[string]time.Duration{north: apart}
			f.failsOver()
			got := f.observe(t, minutes)
			if got.jumps != 0 || got.asked > still.asked || got.leases < still.leases {
				t.Errorf("regions that are %v apart = %+v, want no jump, and leases and samples as of one region: %+v", apart, got, still)
			}
			if got.samples[west] < minutes/2 || got.samples[north] < minutes/2 {
				t.Errorf("samples by region = %v, want those of reads by one, of appends by the other", got.samples)
			}
		}))
	}
	t.Run("further apart than is assumed", bubbled(func(t *testing.T, f *fakeAccount) {
		f.apart = map[string]time.Duration{north: 10 * defaultSkew}
		f.failsOver()
		if got := f.observe(t, minutes); got.jumps == 0 {
			t.Errorf("regions that are %v apart = %+v, want jumps: the difference is assumed to be %v at most", 10*defaultSkew, got, defaultSkew)
		}
	}))
}

// partitionFailsOver has the partition of a worker type fail over by itself: its write
// region is North Europe, and the account names West Europe as before.
func (f *fakeAccount) partitionFailsOver(workerType string) {
	f.hook = on("create", func(r *fakeRequest) *fakeReply {
		if r.URL.Host != west || r.Header.Get("X-Ms-Documentdb-Partitionkey") != `["`+workerType+`"]` {
			return nil
		}
		return refusal(http.StatusForbidden, "The requested operation cannot be performed at this region", headerSubstatus, substatusWriteForbidden)
	})
}

// partitioned is an account of two regions in which single partitions may fail over.
func (f *fakeAccount) partitioned() {
	f.properties["readableLocations"] = regions("West Europe", "North Europe")
	f.properties["enablePerPartitionFailoverBehavior"] = true
}

// Azure's SDK for Go doesn't follow a partition to another region.
func TestAPartitionThatFailsOverByItselfTakesNoAppendsAndIsRead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.partitioned()
		l := f.used(t, Options{})
		if a := l.Account(); !a.PartitionFailover || a.MultipleWrites || !strings.Contains(a.Warning(), "single partitions fail over") {
			t.Errorf("Account() = %+v, warning %q, want it to name the failover of single partitions", a, a.Warning())
		}
		f.set(func() { f.partitionFailsOver("job") })
		began := time.Now()
		err := l.Append(within(t, 5*time.Second), storetest.Grant("job", 2))
		wantSentinel(t, "Append() to a partition that has failed over", err, nil)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Append() took %v, want it to end with its context", took)
		}
		documenttest.Says(t, "Append()", err, nil, "substatus 3", "cannot be performed at this region")
		wantErr(t, "Append() to another partition", l.Append(within(t, time.Second), storetest.Grant("other", 1)), nil)
		records, stamp, err := l.Tail(within(t, time.Second), "job", 3)
		if err != nil || len(records) != 1 || stamp.Server != west {
			t.Errorf("Tail() = %d records, %+v, %v, want the one that was stored, and the time", len(records), stamp, err)
		}
		f.set(func() { f.hook = nil })
		wantErr(t, "Append() when it is back", l.Append(within(t, time.Second), storetest.Grant("job", 2)), nil)
	})
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.partitioned()
		time.AfterFunc(10*time.Minute, func() { f.set(func() { f.partitionFailsOver("job") }) })
		time.AfterFunc(20*time.Minute, func() { f.set(func() { f.hook = nil }) })
		if got := f.observe(t, 30); got.leases < 17 || got.leases > 20 || got.jumps != 0 {
			t.Errorf("30 slots, of which 10 begin while the partition has failed over = %+v, want the other 20 led, at most three less, and no jump", got)
		}
	})
}
