package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Grant returns a valid record with every field set except Group, Orders, Done and Defect. It
// is a pure function: the same arguments give the same record, with the same
// Claim. Its slot is 5 min long and follows that of the Seq before.
func Grant(workerType string, seq int64) store.Record {
	start := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(seq%100_000) * 5 * time.Minute)
	sum := sha256.Sum256([]byte(store.Key(workerType, seq)))
	return store.Record{
		WorkerType:  workerType,
		Seq:         seq,
		Kind:        store.KindGrant,
		InstanceID:  fmt.Sprintf("worker-%d", seq%3),
		Claim:       hex.EncodeToString(sum[:16]),
		Priority:    int(seq % 8),
		SlotStart:   start,
		SlotEnd:     start.Add(5 * time.Minute),
		WindowStart: start,
		WindowEnd:   start.Add(5 * time.Minute),
		Token:       start.UnixMilli(),
		Schedule:    "every 5m0s",
		FixedAt:     start.Add(-10 * time.Second),
		ReadAt:      start.Add(-9 * time.Second),
		DoneUntil:   start,
		Attempt:     int(1 + seq&3),
		Worker:      store.Worker{Host: "host.example", PID: 4711, Version: "v0.1.0"},
		Metadata:    "made by storetest",
	}
}

// claimed is a grant with another claim.
func claimed(workerType string, seq int64, claim string) store.Record {
	r := Grant(workerType, seq)
	sum := sha256.Sum256([]byte(claim))
	r.Claim = hex.EncodeToString(sum[:16])
	r.InstanceID = claim
	return r
}

// wantRecord compares a record that was read with the one that was appended.
func wantRecord(t *testing.T, what string, got, appended store.Record) {
	t.Helper()
	want := appended.Truncated()
	if got == want {
		return
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); a != b {
			t.Errorf("%s: %s = %.200s, want %.200s", what, g.Type().Field(i).Name, show(a), show(b))
		}
	}
}

func show(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.Format(time.RFC3339Nano) + " in " + v.Location().String()
	case string:
		return fmt.Sprintf("%q (%d bytes)", v, len(v))
	default:
		return fmt.Sprintf("%+v", v)
	}
}
