package s3

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The first try of an append may have stored it, whatever the next one says.
func TestARefusalAfterATryOfUnknownOutcomeLeavesItUnknown(t *testing.T) {
	t.Parallel()
	l, h := hookedLedger(t, Options{}, nil)
	must(t, "Init()", l.Init(within(t)))
	var tries atomic.Int64
	h.Hook = func(req *http.Request) *http.Response {
		if !conditional(req) {
			return nil
		}
		if tries.Add(1) == 1 {
			return fault(409, "ConditionalRequestConflict")
		}
		return fault(403, "AccessDenied")
	}
	err := l.Append(within(t), storetest.Grant("job", 1))
	if tries.Load() < 2 || err == nil || errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() after 409 and then 403 = %v, want an outcome that is unknown", err)
	}
}
