package azblob

import (
	"errors"
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Between a worker and the service there may be something that answers anything with a page of its own.
func TestAPageOfSomebodyElseIsNoAnswer(t *testing.T) {
	t.Parallel()
	l, h := hookedLedger(t, Options{}, nil)
	must(t, "Init()", l.Init(within(t, patience)))
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	h.hook = func(*http.Request) *http.Response {
		return reply(200, "<html><body>Please log in</body></html>", "Content-Type", "text/html")
	}
	if err := l.Append(within(t, patience), storetest.Grant("job", 2)); err == nil || errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) {
		t.Errorf("Append() that a portal answers = %v, want an outcome that is unknown", err)
	}
	if records, _, err := l.Tail(within(t, patience), "job", 3); err == nil {
		t.Errorf("Tail() that a portal answers = %v, nil, want an error", records)
	}
	if types, err := l.WorkerTypes(within(t, patience)); err == nil {
		t.Errorf("WorkerTypes() that a portal answers = %v, nil, want an error", types)
	}
}
