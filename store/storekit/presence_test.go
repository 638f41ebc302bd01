package storekit

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Each byte of the texts takes six in JSON.
func TestTheLargestPresenceIsRead(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("\x01", n) }
	p := storetest.Presence("job", strings.Repeat("a", 64))
	p.WorkerType, p.Client = strings.Repeat("w", 63), p.ID
	p.InstanceID, p.Group, p.Host, p.Version, p.Schedule, p.Phase = text(256), text(256), text(1024), text(1024), text(512), store.Phase(text(32))
	p.Why, p.Ineligible, p.Missed, p.Labels = text(store.MaxReason), text(store.MaxReason), text(store.MaxReason), map[string]string{}
	for i := range store.MaxLabels {
		p.Labels[text(61)+fmt.Sprintf("%02d", i)] = text(256)
	}
	must(t, "Check()", p.Check())
	raw, err := EncodePresence(p)
	must(t, "EncodePresence()", err)
	if _, ok := DecodePresence(raw); !ok {
		t.Errorf("DecodePresence() of %d bytes = false, want that it is read", len(raw))
	}
	raw = append(raw, bytes.Repeat([]byte(" "), MaxPresence+1-len(raw))...)
	if _, ok := DecodePresence(raw[:MaxPresence]); !ok {
		t.Error("DecodePresence() of MaxPresence bytes = false, want that it is read")
	}
	if _, ok := DecodePresence(raw); ok {
		t.Error("DecodePresence() of more than MaxPresence bytes = true, want that it is passed over")
	}
}
