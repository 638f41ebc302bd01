package cosmos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var within, must, wantErr = documenttest.Within, documenttest.Must, documenttest.Is

// wantSentinel demands that an error matches one sentinel and no other, in one
// short line without a secret; nil is for an error that means "unknown".
func wantSentinel(t *testing.T, what string, err, want error) {
	t.Helper()
	documenttest.Sentinel(t, what, err, want)
	if err != nil {
		wantNoSecret(t, what, err.Error())
	}
}

// wantNoSecret demands that a text holds no part of the key.
func wantNoSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, part := range []string{"aHVudGVy", "hunter2", "LaHVud"} {
		if strings.Contains(text, part) {
			t.Errorf("%s = %q, want no %q in it", what, text, part)
		}
	}
}

// on is a hook that has each request of a kind answered by a function.
func on(op string, answer func(r *fakeRequest) *fakeReply) func(*fakeRequest) *fakeReply {
	return func(r *fakeRequest) *fakeReply {
		if r.op != op {
			return nil
		}
		return answer(r)
	}
}

// always is a hook that answers all requests of a kind.
func always(op string, answer *fakeReply) func(*fakeRequest) *fakeReply {
	return on(op, func(*fakeRequest) *fakeReply { return answer })
}

// answering is a hook that gives some answers to a kind of request, in turn, and then
// none.
func answering(op string, answers ...*fakeReply) func(*fakeRequest) *fakeReply {
	var met atomic.Int64
	return on(op, func(*fakeRequest) *fakeReply {
		if n := int(met.Add(1)); n <= len(answers) {
			return answers[n-1]
		}
		return nil
	})
}

func TestErrorsByTheReply(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("broken\r\nand long ", 1000)
	for _, c := range []struct {
		op, name string
		reply    *fakeReply
		want     error
		text     string
	}{
		{"create", "400", refusal(400, "bad"), nil, "400 Bad Request: bad"},
		{"create", "401 with a wrong key", refusal(401, "The input authorization token can't serve the request"), store.ErrDenied, "401"},
		{"create", "403 of a firewall or a missing right", refusal(403, "Request blocked by Auth", headerSubstatus, "5302"), store.ErrDenied, "substatus 5302"},
		{"create", "403 of a full partition", refusal(403, "Partition key reached maximum size of 20 GB", headerSubstatus, "1014"), nil, "20 GB"},
		{"create", "404 of a missing container", refusal(404, "Owner resource does not exist", headerSubstatus, "1003"), store.ErrMissing, ""},
		{"create", "408", refusal(408, "timed out"), nil, "408 Request Timeout"},
		{"create", "409", refusal(409, "exists"), store.ErrConflict, ""},
		{"create", "410", refusal(410, "gone"), nil, ""},
		{"create", "412", refusal(412, "precondition"), nil, ""},
		{"create", "413", refusal(413, "too large"), nil, ""},
		{"create", "500 with a long text of many lines", refusal(500, many), nil, "500"},
		{"create", "503", refusal(503, "busy"), nil, ""},
		{"create", "a redirection", reply(307, nil, "Location", "https://elsewhere.example/"), nil, "307"},
		{"create", "HTML of a proxy", reply(502, "<html>"+many), nil, "502 Bad Gateway"},
		{"create", "200 of a proxy: only 201 means stored", reply(200, "<html>blocked"), nil, "200"},
		{"create", "a connection that breaks", hangUp, nil, "unexpected EOF"},
		{"read", "404 without a substatus", refusal(404, "Resource Not Found"), store.ErrNotFound, ""},
		{"read", "404 with substatus 0", refusal(404, "Resource Not Found", headerSubstatus, "0"), store.ErrNotFound, ""},
		{"read", "404 of the container", refusal(404, "Owner resource does not exist", headerSubstatus, "1003"), store.ErrMissing, ""},
		{"read", "404 of a region that lags", refusal(404, "read session not available", headerSubstatus, "1002"), nil, ""},
		{"read", "500", refusal(500, "oops"), nil, ""},
		{"read", "403", refusal(403, "no"), store.ErrDenied, ""},
		{"read", "404 with an odd, empty body", reply(404, nil), store.ErrNotFound, ""},
		{"read", "200 with more than is read", reply(200, strings.Repeat("x", maxBody+1)), nil, ""},
	} {
		t.Run(c.op+" "+c.name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.hook = always(c.op, c.reply)
			l := f.open(t, Options{})
			began := time.Now()
			call, begins := "Append", "cosmos: append job:00000000000000000007: "
			if c.op == "read" {
				call, begins = "Get", "cosmos: get job:00000000000000000001: "
			}
			err := documenttest.Operations(l, storetest.Grant("job", 7))[call](within(t, time.Minute))
			wantSentinel(t, c.op, err, c.want)
			if took := time.Since(began); took > 0 {
				t.Errorf("a %s took %v, want it to fail at once", c.op, took)
			}
			if n := f.ops("create"); c.op == "create" && n != 1 {
				t.Errorf("creates sent = %d, want 1: only the caller knows whether to try again", n)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), begins) || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("a %s = %v, want it to begin with %q and to hold %q", c.op, err, begins, c.text)
			}
		}))
	}
}

func TestAppendThatTimedOutAtTheServerMayHaveHappened(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]*fakeReply{
		"408":                      refusal(408, "timed out"),
		"503":                      refusal(503, "unavailable"),
		"a connection that breaks": hangUp,
		"a reply that never comes": silence,
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.hook = on("create", func(r *fakeRequest) *fakeReply {
				f.set(func() { f.answer(r); f.hook = nil })
				return answer
			})
			l := f.open(t, Options{})
			r := storetest.Grant("job", 7)
			wantSentinel(t, "Append()", l.Append(within(t, time.Second), r), nil)
			if got, err := l.Get(within(t, time.Second), "job", 7); err != nil || got != r {
				t.Errorf("Get() = %+v, %v, want the record that was stored all the same", got, err)
			}
			wantSentinel(t, "Append() again", l.Append(within(t, time.Second), r), store.ErrConflict)
		}))
	}
}

func TestLostConnectionsAreLeftToTheCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		l := f.open(t, Options{})
		must(t, "Now()", documenttest.ErrorOf(l.Now(within(t, time.Minute))))
		f.set(func() { f.hook, f.log = func(*fakeRequest) *fakeReply { return hangUp }, nil })
		for name, call := range map[string]func(ctx context.Context) error{
			"Get":  func(ctx context.Context) error { _, err := l.Get(ctx, "job", 1); return err },
			"Tail": func(ctx context.Context) error { _, _, err := l.Tail(ctx, "job", 1); return err },
			"Now":  func(ctx context.Context) error { _, err := l.Now(ctx); return err },
		} {
			began := time.Now()
			err := call(within(t, time.Minute))
			wantSentinel(t, name+"()", err, nil)
			if took := time.Since(began); took > 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s() = %v after %v, want the cause at once", name, err, took)
			}
		}
		if len(f.log) != 3 {
			t.Errorf("requests sent = %d, want 3: the SDK would have tried each several times", len(f.log))
		}
	})
}

func TestRegionThatTakesNoWritesIsTriedUntilItDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.properties["writableLocations"], f.properties["readableLocations"] = regions("West Europe"), regions("West Europe", "North Europe")
		refused := 0
		f.hook = on("create", func(r *fakeRequest) *fakeReply {
			if strings.HasPrefix(r.URL.Host, "acct-westeurope.") {
				if refused++; refused == 2 {
					// The failover is over.
					f.set(func() { f.properties["writableLocations"] = regions("North Europe") })
				}
				return refusal(403, "The requested operation cannot be performed at this region", headerSubstatus, "3")
			}
			return nil
		})
		l := f.open(t, Options{})
		wantErr(t, "Append() during a failover", l.Append(within(t, time.Minute), storetest.Grant("job", 1)), nil)
		records, stamp, err := l.Tail(within(t, time.Second), "job", 1)
		if err != nil || len(records) != 1 || !strings.HasPrefix(stamp.Server, "acct-northeurope.") {
			t.Errorf("Tail() = %d records, stamp %+v, %v, want one, read where writes go now", len(records), stamp, err)
		}
		if got := l.Account().WriteRegions; len(got) != 1 || got[0] != "North Europe" {
			t.Errorf("Account().WriteRegions = %q, want that after the failover", got)
		}

		f.hook = always("create", refusal(403, "not here", headerSubstatus, "3"))
		err = l.Append(within(t, 3500*time.Millisecond), storetest.Grant("job", 2))
		wantSentinel(t, "Append() while no region takes writes", err, nil)
		documenttest.Says(t, "Append()", err, context.DeadlineExceeded, "substatus 3")
	})
}

func TestOperationsEndWithTheContextWhateverTheServerDoes(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"account", "container", "create", "read", "query", "delete"} {
		t.Run("silence to "+op, bubbled(func(t *testing.T, f *fakeAccount) {
			f.plant(t, "job", store.Key("job", 1), nil)
			f.plant(t, "job", store.Key("job", 2), nil)
			f.hook = always(op, silence)
			l := f.open(t, Options{})
			hung := 0
			for name, call := range documenttest.Operations(l, storetest.Grant("job", 3)) {
				began := time.Now()
				err := call(within(t, 200*time.Millisecond))
				switch took := time.Since(began); {
				case took == 0:
					continue // It had nothing to do with this kind of request.
				case took != 200*time.Millisecond || !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("%s() = %v after %v, want context.DeadlineExceeded after 200ms", name, err, took)
				}
				hung++
				wantSentinel(t, name+"()", err, nil)
			}
			if hung == 0 {
				t.Error("no operation met the silence")
			}
			wantErr(t, "Close()", l.Close(t.Context()), nil)
			// The bubble waits for all goroutines: none may outlive Close.
		}))
	}
}

// Azure's keys have 88 characters. A shorter one could be in other texts by chance, and
// would be betrayed by what its removal garbles.
func TestAnErrorShowsNoKeyAndIsNotGarbled(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"YQ==", "jobs", "leases==", "acct", "document", "append==", fakeKey} {
		t.Run(key, bubbled(func(t *testing.T, f *fakeAccount) {
			const said = "append to jobs/leases of https://acct.documents.azure.com/?sv=1&sig=%s and AccountKey=%s; is bad (job:00000000000000000007)"
			f.hook = always("create", refusal(401, fmt.Sprintf(said, url.QueryEscape(key), key)))
			l := f.open(t, Options{URI: "cosmos://acct/jobs/leases", Key: key})
			err := l.Append(within(t, time.Minute), storetest.Grant("job", 7))
			wantSentinel(t, "Append()", err, store.ErrDenied)
			documenttest.Equal(t, "Append()", fmt.Sprint(err), "cosmos: append job:00000000000000000007: access denied: 401 Unauthorized: "+fmt.Sprintf(said, "***", "***"))
		}))
	}
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = always("create", refusal(401, strings.Repeat("x", maxMessage-20)+" "+fakeKey))
		err := f.open(t, Options{}).Append(within(t, time.Minute), storetest.Grant("job", 7))
		wantSentinel(t, "Append() with a key that was cut off", err, store.ErrDenied)
	})
}

// Another worker trims, too, and then the service falls silent.
func TestAnOperationThatIsEndedDoesNotBlameAnAnswerThatItTook(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		for seq := range int64(4) {
			f.plant(t, "job", store.Key("job", seq+1), nil)
		}
		f.hook = answering("delete", refusal(404, "Entity with the specified id does not exist"), silence, silence, silence)
		_, err := f.open(t, Options{}).Trim(within(t, time.Second), "job", 4)
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "404") {
			t.Errorf("Trim() on a service that fell silent = %v, want DeadlineExceeded, and not the 404 of a record that was trimmed already", err)
		}
	})
}
