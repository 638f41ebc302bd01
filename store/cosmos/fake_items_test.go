package cosmos

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestAppendSendsTheItemInItsPartition(t *testing.T) {
	t.Parallel()
	f := newFake()
	r := storetest.Grant("job", 7)
	r.Group = "eu"
	must(t, "Append()", f.open(t, Options{URI: "cosmos://acct/jobs/my-leases"}).Append(within(t, time.Minute), r))
	sent := f.log[len(f.log)-1]
	documenttest.Equal(t, "the path of the POST", sent.URL.Path, "/dbs/jobs/colls/my-leases/docs")
	documenttest.Equal(t, "partition key", sent.Header.Get("X-Ms-Documentdb-Partitionkey"), `["job"]`)
	documenttest.Equal(t, "upsert", sent.Header.Get("X-Ms-Documentdb-Is-Upsert"), "")
	var got map[string]any
	must(t, "Unmarshal()", json.Unmarshal([]byte(sent.text), &got))
	want := map[string]any{"id": "job:00000000000000000007", "workerType": "job", "seq": 7.0}
	for name, v := range storetest.Fields(r) {
		switch v := v.(type) {
		case time.Time:
			want[name] = store.Format(v)
		case int64:
			want[name] = float64(v)
		case map[string]any:
			want[name] = map[string]any{"host": v["host"], "pid": float64(v["pid"].(int64)), "version": v["version"]}
		default:
			want[name] = v
		}
	}
	for _, empty := range []string{"orders", "done", "spared", "work"} {
		delete(want, empty) // there is none
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the item differs (-want +got):\n%s", diff)
	}
}

func TestTailIsOneParameterisedQueryInOnePartition(t *testing.T) {
	t.Parallel()
	f := newFake()
	if _, _, err := f.open(t, Options{}).Tail(within(t, time.Minute), "job", 3); err != nil {
		t.Fatal(err)
	}
	documenttest.Equal(t, "queries", f.ops("query"), 1)
	sent := f.log[len(f.log)-1]
	documenttest.Equal(t, "partition key", sent.Header.Get("X-Ms-Documentdb-Partitionkey"), `["job"]`)
	documenttest.Equal(t, "cross partition", sent.Header.Get("X-Ms-Documentdb-Query-Enablecrosspartition"), "")
	want := `{"query":"SELECT TOP 3 ` + strings.ReplaceAll(projection, `"`, `\"`) + `, GetCurrentTimestamp() AS storeTime FROM c WHERE c.workerType = @type ORDER BY c.id DESC","parameters":[{"name":"@type","value":"job"}]}`
	if sent.text != want {
		t.Errorf("query %s\nwant %s", sent.text, want)
	}
}

func TestIDsThatAreNoKeysHideNoRecord(t *testing.T) {
	t.Parallel()
	f := newFake()
	l := f.open(t, Options{})
	documenttest.OddIDs(within(t, time.Minute), t, l, func() {
		// Above all keys, between keys, below all keys, and keys of other types.
		for _, id := range []string{"zzz", "job:zzz", "job:00000000000000000004x", "job:0000000000000000000", "job:", "a", "other:00000000000000000001"} {
			f.plant(t, "job", id, nil)
		}
	}, func() int { return len(f.items["job"]) })
}

func TestTailPassesOverBoundedlyManyUnreachableIDs(t *testing.T) {
	t.Parallel()
	var items []any
	for i := range 1000 {
		items = append(items, map[string]any{"id": fmt.Sprintf("job:0000000000000000000%dx", i)})
	}
	f := newFake()
	f.hook = always("query", reply(200, map[string]any{"Documents": items}, "X-Ms-Continuation", "more"))
	_, _, err := f.open(t, Options{}).Tail(within(t, time.Minute), "job", 1)
	documenttest.Says(t, "Tail()", err, nil, "remove them")
}

func TestTrimCountsWhatItDeletedAndStopsAtTheFirstError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook    func(*fakeRequest) *fakeReply
		deleted int
		sent    int
		want    error
	}{
		"somebody else trims, too": {answering("delete", refusal(404, "gone")), 198, 199, nil},
		"no right to delete":       {always("delete", refusal(403, "no right")), 0, storekit.AtATime, store.ErrDenied},
	} {
		f := newFake()
		for seq := range int64(200) {
			f.plant(t, "job", store.Key("job", seq+1), nil)
		}
		f.hook = c.hook
		n, err := f.open(t, Options{}).Trim(within(t, time.Minute), "job", store.MaxSeq)
		if sent := f.ops("delete"); n != c.deleted || sent > c.sent || (err == nil) != (c.want == nil) {
			t.Errorf("%s: Trim() = %d, %v by %d requests, want %d, %v by at most %d", name, n, err, sent, c.deleted, c.want, c.sent)
		}
		if c.want != nil {
			wantSentinel(t, "Trim()", err, c.want)
		}
	}
}

func TestWorkerTypesAmongManyOddItems(t *testing.T) {
	t.Parallel()
	f := newFake()
	l := f.open(t, Options{})
	f.plant(t, "number", store.Key("number", 1), map[string]any{"workerType": 5})
	documenttest.TypesAmongOddIDs(within(t, time.Minute), t, l, func(workerType, id string) { f.plant(t, workerType, id, nil) })
	for _, r := range f.log {
		if r.op == "query" && r.Header.Get("X-Ms-Documentdb-Query-Enablecrosspartition") == "" {
			t.Errorf("query %s without leave to cross partitions", r.text)
		}
	}
}
