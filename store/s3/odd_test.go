package s3

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

// The first try of an append may have stored it, whatever the next one says.
func TestARefusalAfterATryOfUnknownOutcomeLeavesItUnknown(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	h := &hooked{Hook: func(req *http.Request) *http.Response {
		if !conditional(req) {
			return fault(500, "InternalError")
		}
		if tries.Add(1) == 1 {
			return fault(409, "ConditionalRequestConflict")
		}
		return fault(403, "AccessDenied")
	}}
	l := opened(t, Options{URI: uriOf("http://127.0.0.1:1", "bucket/jobs"), Getenv: environment(s3peer.ID), Transport: h})
	err := objects{l}.Create(suites.Deadline(t), "jobs/1", []byte("{}"))
	if tries.Load() != 2 || err == nil || l.meaning(err).NotStored {
		t.Errorf("Create() after 409 and then 403 = %v (%d tries), want an outcome that is unknown", err, tries.Load())
	}
}
