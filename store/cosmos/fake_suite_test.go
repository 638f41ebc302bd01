package cosmos

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The conformance suite on the fake account: what it shows beyond the peer is the
// server time that is selected along, in milliseconds.
func TestConformanceOfTheFakeAccount(t *testing.T) {
	suites.SecondPath(t)
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		f := newFake()
		f.container = nil
		return storetest.Harness{
			Skips:     skips,
			FreeStamp: true,
			Rounds:    100, // make soak runs 1,000
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return f.open(t, Options{})
			},
			OpenReading: func(t testing.TB) store.Ledger {
				t.Helper()
				l, err := Open(t.Context(), Options{URI: "cosmos://acct", Key: fakeKey, Transport: readKey{f}})
				must(t, "Open()", err)
				return l
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				if v, ok := fields["workerType"]; ok && v != any(workerType) {
					t.Skip("workerType is the partition key: no item can contradict it")
				}
				if strings.ContainsAny(workerType, `/\?#`) {
					t.Skip("an id can't have these characters")
				}
				all := map[string]any{"seq": seq}
				for k, v := range fields {
					all[k] = v
				}
				f.plant(t, workerType, store.Key(workerType, seq), all)
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				text, err := json.Marshal(presenceItem(workerType, id, fields))
				must(t, "Marshal()", err)
				f.set(func() { f.attend(workerType, storekit.PresenceKey(workerType, id), text) })
			},
		}
	})
}

// readKey is what an account answers if it is asked with a read-only key.
type readKey struct{ *fakeAccount }

func (k readKey) Do(req *http.Request) (*http.Response, error) {
	r := &fakeRequest{Request: req, op: fakeOp(req)}
	switch r.op {
	case "create", "delete", "create database", "create container", "create roster", "attend", "leave":
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.response(r, refusal(http.StatusForbidden, "The input authorization token can't serve the request: it is read-only")), nil
	}
	return k.fakeAccount.Do(req)
}
