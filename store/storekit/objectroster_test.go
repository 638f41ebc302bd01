package storekit

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestWhatIsNoPresenceIsNotReadFromARoster(t *testing.T) {
	t.Parallel()
	l, s := shelved(t)
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "host-1"), storetest.Presence("mail", "host-2")}))
	for i := range 60 {
		s.put(fmt.Sprintf("roster/job/id-large-%d", i), bytes.Repeat([]byte(" "), MaxPresence+1))
		s.put(fmt.Sprintf("roster/job/other-%d", i), []byte("{}"))
	}
	all, err := l.Presences(t.Context(), "")
	if err != nil || len(all) != 2 || s.reads != 2 {
		t.Errorf("Presences() = %d, %v, after %d reads, want 2 after 2", len(all), err, s.reads)
	}
}
