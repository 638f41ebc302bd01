package storetest_test

import (
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// spoiled are harnesses that are broken, of a store that isn't.
var spoiled = []struct {
	name, seen string
	spoil      func(h *storetest.Harness)
}{
	{"a case that is skipped without a word", "two_paths/of_two_paths_at_most_one_stores_a_key", func(h *storetest.Harness) { h.OpenElsewhere = nil }},
	{"a part that is skipped without a word", "planted_documents/a_document_with_a_field_of_a_wrong_type_has_a_Defect/token_is_bool_true", func(h *storetest.Harness) {
		plant := h.Plant
		h.Plant = func(t testing.TB, workerType string, seq int64, fields map[string]any) {
			t.Helper()
			if fields["token"] == any(true) {
				t.Skip("the column holds numbers")
			}
			plant(t, workerType, seq, fields)
		}
	}},
	{"an announcement of something else", "two_paths/of_two_paths_at_most_one_stores_a_key", func(h *storetest.Harness) {
		h.OpenElsewhere = nil
		h.Skips = map[string]string{"two": "one path", "two paths/of two": "one path", "paths": "one path"}
	}},
	{"an announcement without a reason", "two_paths/of_two_paths_at_most_one_stores_a_key", func(h *storetest.Harness) {
		h.OpenElsewhere, h.Skips = nil, map[string]string{"two paths": ""}
	}},
	{"documents that can hold no presence", "append/a_conflict_leaves", func(h *storetest.Harness) { h.MaxDocument = 16 << 10 }},
}

func harnessDefects() (all []defect) {
	for _, s := range spoiled {
		all = append(all, defect{s.name, func(*broken) {}, s.seen})
	}
	return all
}

// spoil breaks the harness if the defect is one of a harness.
func spoil(name string, h *storetest.Harness) {
	for _, s := range spoiled {
		if s.name == name {
			s.spoil(h)
		}
	}
}

// A store whose documents are limited, and whose handles have no right to create anything.
func TestTheSuiteKeepsToWhatTheHarnessSays(t *testing.T) {
	const most = 300 << 10
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		m := memory.New(memory.Options{})
		initialised, opened := 0, 0
		t.Cleanup(func() {
			if initialised != 1 {
				t.Errorf("InitFirst was called %d times, want once", initialised)
			}
		})
		return storetest.Harness{
			FreeStamp:   true,
			MaxDocument: most,
			Rounds:      5,
			InitFirst: func(t testing.TB) {
				t.Helper()
				if initialised++; opened > 0 {
					t.Error("InitFirst was called after Open, want it before")
				}
			},
			Open: func(testing.TB) store.Ledger {
				opened++
				return m.Handle()
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				key := map[string]any{"id": store.Key(workerType, seq), "workerType": workerType, "seq": seq}
				if n := len(storetest.Document(t, key, fields)); n > most {
					t.Errorf("planted document has %d bytes, want at most MaxDocument: %d", n, most)
				}
				m.Put(storetest.Decode(workerType, seq, fields))
			},
			Skips: map[string]string{
				"readers": "handles have all rights", "attendance/a reader*": "handles have all rights",
				"attendance/a planted presence*": "the roster holds Go values", "foreign constraints": "it has none", "two paths": "it has one",
			},
		}
	})
}

func TestADocumentHasTheFieldsOfItsKeyUnlessItIsGivenOthers(t *testing.T) {
	key := map[string]any{"workerType": "job", "seq": int64(7)}
	fields := map[string]any{
		"seq": 2.5, "windowEnd": storetest.Grant("job", 7).WindowEnd, "worker": map[string]any{"pid": int64(1)}, "labels": map[string]any{"zone": int64(1)}, "group": nil,
	}
	const want = `{"group":null,"labels":[{"name":"zone","value":1}],"seq":2.5,"windowEnd":"2026-03-02T00:40:00.000Z","worker":{"pid":1},"workerType":"job"}`
	if got := string(storetest.Document(t, key, fields)); got != want {
		t.Errorf("Document() = %s, want %s", got, want)
	}
	if key["seq"] != int64(7) {
		t.Errorf("the key is %v afterwards, want it as it was", key)
	}
}
