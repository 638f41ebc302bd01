package cosmos

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/slotlease/slotlease/store"
)

// fakeAccount stands in for an account of Azure Cosmos DB in what no peer shows.
// It is a transport, made after Microsoft's documentation of the REST API (status
// codes, headers, properties of the account, charges) and never compared with a
// real account: that the tests with it pass says that this package does what the
// documentation asks for, and no more. Of queries it knows those that are sent
// here.
type fakeAccount struct {
	mu sync.Mutex
	// properties are those of the account, by name.
	properties map[string]any
	// container is missing if it is nil.
	container map[string]any
	items     map[string]map[string]json.RawMessage
	// roster are the items of the roster's container, which is missing if it is nil.
	roster map[string]map[string]json.RawMessage
	// timeless servers don't know GetCurrentTimestamp.
	timeless bool
	// hook may answer in place of the account, or do something and return nil.
	hook func(r *fakeRequest) *fakeReply
	// log are the requests so far.
	log []*fakeRequest
	// ahead is how far the account's clock is, and apart how far that of a region is from
	// it, by its host.
	ahead time.Duration
	apart map[string]time.Duration
	// skew is that of the ledger which was opened last.
	skew time.Duration
}

// fakeRequest is a request as it came.
type fakeRequest struct {
	*http.Request
	// op is account, container, create container, create, read, delete or query, and for the
	// roster's container create roster, attend, leave or presences.
	op   string
	text string
}

// regions are locations in the form of the account's properties.
func regions(names ...string) []map[string]string {
	out := []map[string]string{}
	for _, n := range names {
		out = append(out, map[string]string{"name": n, "databaseAccountEndpoint": "https://acct-" + strings.ReplaceAll(strings.ToLower(n), " ", "") + ".documents.azure.com:443/"})
	}
	return out
}

// newFake is an account with one region, strong consistency and a container.
func newFake() *fakeAccount {
	return &fakeAccount{
		properties: map[string]any{
			"id":                           "acct",
			"writableLocations":            regions("West Europe"),
			"readableLocations":            regions("West Europe"),
			"enableMultipleWriteLocations": false,
			"userConsistencyPolicy":        map[string]any{"defaultConsistencyLevel": "Strong"},
		},
		container: map[string]any{"id": DefaultContainer, "partitionKey": map[string]any{"paths": []string{"/workerType"}, "kind": "Hash", "version": 2}},
		items:     map[string]map[string]json.RawMessage{},
	}
}

// inBubble runs a test with an account in a bubble, where waiting takes no time and a
// goroutine that is left over is noticed.
func inBubble(t *testing.T, test func(t *testing.T, f *fakeAccount)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFake()) })
}

// bubbled is a subtest that runs so.
func bubbled(test func(t *testing.T, f *fakeAccount)) func(t *testing.T) {
	return func(t *testing.T) { inBubble(t, test) }
}

// fakeKey is an account key that must never be shown.
const fakeKey = "aHVudGVyMmh1bnRlcjIvL2h1bnRlcjIraHVudGVyMg=="

// open opens a ledger in the account.
func (f *fakeAccount) open(t testing.TB, o Options) *Ledger {
	t.Helper()
	if o.URI == "" && o.ConnectionString == "" {
		o.URI = "cosmos://acct"
	}
	if o.Key == "" && o.KeyFunc == nil && o.ConnectionString == "" && o.Credential == nil {
		o.Key = fakeKey
	}
	o.Transport = f
	f.skew = cmp.Or(o.ServerSkew, defaultSkew)
	l, err := Open(t.Context(), o)
	must(t, "Open()", err)
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	return l
}

// ops counts the requests of a kind.
func (f *fakeAccount) ops(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.log {
		if r.op == op {
			n++
		}
	}
	return n
}

// set changes the account under its lock.
func (f *fakeAccount) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Do answers a request.
func (f *fakeAccount) Do(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	r := &fakeRequest{Request: req, op: fakeOp(req)}
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.text = string(b)
	}
	if r.op == "create container" && strings.Contains(r.text, rosterSuffix+`"`) {
		r.op = "create roster"
	}
	f.mu.Lock()
	f.log = append(f.log, r)
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		switch reply := hook(r); reply {
		case hangUp:
			return nil, io.ErrUnexpectedEOF
		case silence:
			<-req.Context().Done()
			return nil, req.Context().Err()
		case nil:
		default:
			return f.response(r, reply), nil
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.response(r, f.answer(r)), nil
}

// hangUp and silence are replies that never come.
var hangUp, silence = &fakeReply{}, &fakeReply{}

func fakeOp(req *http.Request) string {
	segments := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	kind := segments[max(0, (len(segments)-1)/2*2)]
	switch {
	case segments[0] == "":
		return "account"
	case req.Method == http.MethodPost && kind == "dbs":
		return "create database"
	case req.Method == http.MethodPost && kind == "colls":
		return "create container"
	case kind == "colls":
		return "container"
	case strings.Contains(req.URL.Path, rosterSuffix+"/docs"):
		switch {
		case req.Header.Get("Content-Type") == "application/query+json":
			return "presences"
		case req.Method == http.MethodDelete:
			return "leave"
		}
		return "attend"
	case req.Header.Get("Content-Type") == "application/query+json":
		return "query"
	case req.Method == http.MethodPost:
		return "create"
	case req.Method == http.MethodDelete:
		return "delete"
	}
	return "read"
}

// fakeReply is one of the account's, with a status, an optional body and headers in
// pairs. It may be given more than once.
type fakeReply struct {
	status  int
	body    any
	headers []string
}

func reply(status int, body any, headers ...string) *fakeReply {
	return &fakeReply{status, body, headers}
}

// refusal is a reply with a code and a message.
func refusal(status int, message string, headers ...string) *fakeReply {
	return reply(status, map[string]string{"code": http.StatusText(status), "message": message}, headers...)
}

// charges are Microsoft's examples for items of 1 KB, or near them.
var charges = map[string]string{"create": "5.52", "read": "1", "query": "2.85", "delete": "5.52", "container": "1", "attend": "5.52", "leave": "5.52", "presences": "2.85"}

// response is a reply with the headers that all have.
func (f *fakeAccount) response(r *fakeRequest, reply *fakeReply) *http.Response {
	b := []byte{}
	if reply.body != nil {
		b, _ = json.Marshal(reply.body)
	}
	h := http.Header{"Content-Type": {"application/json"}, "Date": {f.at(r).UTC().Format(http.TimeFormat)}}
	if units := charges[r.op]; units != "" {
		h.Set(headerCharge, units)
	}
	for pair := range slices.Chunk(reply.headers, 2) {
		h.Set(pair[0], pair[1])
	}
	return &http.Response{
		StatusCode: reply.status, Status: fmt.Sprintf("%d %s", reply.status, http.StatusText(reply.status)),
		Header: h, Body: io.NopCloser(bytes.NewReader(b)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: r.Request,
	}
}

func (f *fakeAccount) now() time.Time { return time.Now().Add(f.ahead) }

// at is the time by the clock of the region that a request was sent to, if it was sent.
func (f *fakeAccount) at(r *fakeRequest) time.Time {
	if r.Request == nil {
		return f.now()
	}
	return f.now().Add(f.apart[r.URL.Host])
}

func (f *fakeAccount) answer(r *fakeRequest) *fakeReply {
	switch r.op {
	case "account":
		return reply(http.StatusOK, f.properties)
	case "create database":
		return reply(http.StatusCreated, json.RawMessage(r.text))
	case "create container":
		if f.container != nil {
			return refusal(http.StatusConflict, "exists")
		}
		_ = json.Unmarshal([]byte(r.text), &f.container)
		f.container["_rid"] = fmt.Sprintf("made=%d", f.at(r).Unix())
		return reply(http.StatusCreated, f.container)
	}
	if slices.Contains([]string{"create roster", "attend", "leave", "presences"}, r.op) {
		return f.onRoster(r)
	}
	if f.container == nil {
		return refusal(http.StatusNotFound, "no such container", headerSubstatus, substatusOwnerMissing)
	}
	var partition []string
	_ = json.Unmarshal([]byte(r.Header.Get("X-Ms-Documentdb-Partitionkey")), &partition)
	if r.op == "container" {
		return reply(http.StatusOK, f.container)
	}
	if r.op == "query" {
		return f.query(r, f.items, partition)
	}
	if len(partition) != 1 {
		return refusal(http.StatusBadRequest, "the partition key is missing")
	}
	items := f.items[partition[0]]
	id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch r.op {
	case "create":
		var item map[string]any
		if err := json.Unmarshal([]byte(r.text), &item); err != nil || item["workerType"] != partition[0] {
			return refusal(http.StatusBadRequest, "the partition key isn't that of the item")
		}
		return f.create(partition[0], item, f.at(r))
	case "delete":
		if items[id] == nil {
			return refusal(http.StatusNotFound, "no such item")
		}
		delete(items, id)
		return reply(http.StatusNoContent, nil)
	}
	if items[id] == nil {
		return refusal(http.StatusNotFound, "no such item", headerSubstatus, "0")
	}
	return reply(http.StatusOK, items[id])
}

func (f *fakeAccount) create(partition string, item map[string]any, at time.Time) *fakeReply {
	id := fmt.Sprint(item["id"])
	if f.items[partition] == nil {
		f.items[partition] = map[string]json.RawMessage{}
	}
	if f.items[partition][id] != nil {
		return refusal(http.StatusConflict, "an item with this id exists")
	}
	item["_ts"] = at.Unix()
	f.items[partition][id], _ = json.Marshal(item)
	return reply(http.StatusCreated, f.items[partition][id])
}

// plant puts an item into a partition, as another program might.
func (f *fakeAccount) plant(t testing.TB, partition, id string, fields map[string]any) {
	t.Helper()
	item := map[string]any{"id": id, "workerType": partition}
	for k, v := range fields {
		if at, ok := v.(time.Time); ok {
			v = store.Format(at)
		}
		item[k] = v
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.create(partition, item, f.now()); got.status != http.StatusCreated {
		t.Fatalf("plant %s: %d", id, got.status)
	}
}

var _ policy.Transporter = (*fakeAccount)(nil)
