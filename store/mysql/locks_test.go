package mysql

import (
	"os"
	"strings"
	"testing"
)

// How long a statement waits for a lock is promised: an append that was given up here must not land long after.
func TestTheDocumentationSaysHowLongLocksAreWaitedFor(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("doc.go")
	must(t, "ReadFile()", err)
	if want := "No statement waits for more than " + lockSeconds + " s for a lock"; !strings.Contains(string(b), want) {
		t.Errorf("doc.go doesn't say %q", want)
	}
}
