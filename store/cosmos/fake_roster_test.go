package cosmos

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// onRoster answers what is sent to the roster's container.
func (f *fakeAccount) onRoster(r *fakeRequest) *fakeReply {
	switch {
	case r.op == "create roster" && f.roster != nil:
		return refusal(http.StatusConflict, "exists")
	case r.op == "create roster":
		f.roster = map[string]map[string]json.RawMessage{}
		return reply(http.StatusCreated, json.RawMessage(r.text))
	case f.roster == nil:
		return refusal(http.StatusNotFound, "no such container", headerSubstatus, substatusOwnerMissing)
	}
	var partition []string
	_ = json.Unmarshal([]byte(r.Header.Get("X-Ms-Documentdb-Partitionkey")), &partition)
	switch {
	case r.op == "presences":
		return f.query(r, f.roster, partition)
	case len(partition) != 1:
		return refusal(http.StatusBadRequest, "the partition key is missing")
	case r.op == "leave":
		id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		if f.roster[partition[0]][id] == nil {
			return refusal(http.StatusNotFound, "no such item")
		}
		delete(f.roster[partition[0]], id)
		return reply(http.StatusNoContent, nil)
	}
	var item struct{ ID, WorkerType string }
	err := json.Unmarshal([]byte(r.text), &item)
	if err != nil || item.WorkerType != partition[0] || r.Header.Get("X-Ms-Documentdb-Is-Upsert") != "true" {
		return refusal(http.StatusBadRequest, "no upsert of an item in its partition")
	}
	f.attend(partition[0], item.ID, json.RawMessage(r.text))
	return reply(http.StatusOK, nil)
}

// attend puts an item into the roster.
func (f *fakeAccount) attend(partition, id string, item json.RawMessage) {
	if f.roster[partition] == nil {
		f.roster[partition] = map[string]json.RawMessage{}
	}
	f.roster[partition][id] = item
}

// crowd are presences of a worker type.
func crowd(ids ...string) (all []store.Presence) {
	for _, id := range ids {
		all = append(all, storetest.Presence("job", id))
	}
	return all
}

func TestARosterThatIsMissingIsEmptyUntilInit(t *testing.T) {
	t.Parallel()
	f := newFake()
	l := f.open(t, Options{URI: "cosmos://acct/jobs/leases"})
	ctx := within(t, time.Minute)
	err := l.Attend(ctx, crowd("a"))
	wantSentinel(t, "Attend() without a container", err, store.ErrMissing)
	documenttest.Says(t, "Attend() without a container", err, store.ErrMissing, "no container jobs/leases-roster: create it, as leasectl init does")
	wantErr(t, "Leave() without a container", l.Leave(ctx, "job", []string{"a"}), nil)
	for _, of := range []string{"job", ""} {
		if got, err := l.Presences(ctx, of); len(got) != 0 || err != nil {
			t.Errorf("Presences(%q) without a container = %v, %v, want none", of, got, err)
		}
	}
	wantErr(t, "Append() beside it", l.Append(ctx, storetest.Grant("job", 1)), nil)
	must(t, "Init()", l.Init(ctx))
	must(t, "Attend() after Init", l.Attend(ctx, crowd("a")))
	documenttest.Equal(t, "rosters created", f.ops("create roster"), 1)
	for _, r := range f.log {
		if r.op == "create roster" && (r.Header.Get("X-Ms-Offer-Throughput") != "" || !strings.Contains(r.text, `{"id":"leases-roster","partitionKey":{"kind":"Hash","paths":["/workerType"],"version":2}`)) {
			t.Errorf("roster created as %s with %v, want it by worker type and without throughput of its own", r.text, r.Header)
		}
	}
}

// A worker whose roster is missing or denied attends again and again.
func TestTroubleOfTheRosterCausesNoChecksOfTheLedger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply *fakeReply
		want  error
	}{
		"missing": {refusal(404, "no such container", headerSubstatus, substatusOwnerMissing), store.ErrMissing},
		"denied":  {refusal(403, "no right"), store.ErrDenied},
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.hook = always("attend", c.reply)
			l := f.open(t, Options{})
			for range 3 {
				wantSentinel(t, "Attend()", l.Attend(within(t, time.Minute), crowd("a")), c.want)
				time.Sleep(lookPause + time.Second)
			}
			documenttest.Equal(t, "checks of the ledger's container", f.ops("container"), 1)
			must(t, "Init()", l.Init(within(t, time.Minute)))
		}))
	}
}

func TestWithoutTheRightToCreateARosterInitIsThatOfTheLedger(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.hook = always("create roster", refusal(403, "operations of management can't be authorised by tokens", headerSubstatus, "5300"))
	must(t, "Init()", f.open(t, Options{}).Init(within(t, time.Minute)))
}

func TestAThrottledAttendRepeatsOnlyWhatWasNotStoredAndIsCharged(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.roster = map[string]map[string]json.RawMessage{}
		var n atomic.Int64
		f.hook = on("attend", func(*fakeRequest) *fakeReply {
			if n.Add(1) == 3 {
				return refusal(429, "too many requests", headerRetryAfter, "50")
			}
			return nil
		})
		l := f.open(t, Options{})
		ctx, receipt := store.WithReceipt(within(t, time.Minute))
		must(t, "Attend()", l.Attend(ctx, crowd("a", "b", "c", "d")))
		documenttest.Equal(t, "upserts", f.ops("attend"), 5)
		documenttest.Equal(t, "presences stored", len(f.roster["job"]), 4)
		if got := receipt.Units(); got < 5*5.52 {
			t.Errorf("Attend() charged %v, want at least that of 5 upserts", got)
		}
		f.hook = always("attend", refusal(429, "too many requests", headerRetryAfter, "90000"))
		wantSentinel(t, "Attend() under a long throttling", l.Attend(within(t, time.Minute), crowd("a")), store.ErrThrottled)
	})
}
