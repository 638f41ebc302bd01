package azblob

import (
	"errors"
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
)

// Only a blob that isn't there is no record: where there is no container, nothing is known of records.
func TestOnlyABlobThatIsNotThereIsNoRecord(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"BlobNotFound": true, "ContainerNotFound": false, "ResourceNotFound": false} {
		h := &hooked{Hook: func(*http.Request) *http.Response { return fault(404, code) }}
		l := opened(t, Options{URI: uriOf("http://127.0.0.1:1", "leases/jobs"), Transport: h})
		_, err := objects{l}.Read(suites.Deadline(t), "jobs/1")
		if err == nil || errors.Is(err, store.ErrNotFound) != want {
			t.Errorf("Read() after %s = %v, no such record: want %v", code, err, want)
		}
	}
}
