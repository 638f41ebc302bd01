package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// unfit are presences that were planted, and can't be read or are invalid.
type unfit struct {
	mu  sync.Mutex
	all []store.Presence
}

// plant is a PlantPresence for a ledger in memory.
func (u *unfit) plant(m *memory.Ledger) func(t testing.TB, workerType, id string, fields map[string]any) {
	return func(t testing.TB, workerType, id string, fields map[string]any) {
		t.Helper()
		fields = maps.Clone(fields)
		fields["workerType"], fields["id"] = workerType, id
		text, err := json.Marshal(fields)
		var p store.Presence
		if err == nil {
			err = json.Unmarshal(text, &p)
		}
		if err == nil {
			err = m.Attend(t.Context(), []store.Presence{p})
		}
		if err != nil {
			p.WorkerType, p.ID = workerType, id
			u.mu.Lock()
			defer u.mu.Unlock()
			u.all = append(u.all, p)
		}
	}
}

func (u *unfit) list() []store.Presence {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.all)
}

// listed is a roster that changes what it lists.
func listed(name, seen string, f func(all []store.Presence) []store.Presence) defect {
	return defect{name, func(b *broken) {
		b.presences = func(ctx context.Context, workerType string) ([]store.Presence, error) {
			all, err := b.Ledger.Presences(ctx, workerType)
			return f(all), err
		}
	}, seen}
}

// each is a roster that changes each presence that it lists.
func each(name, seen string, f func(p *store.Presence)) defect {
	return listed(name, seen, func(all []store.Presence) []store.Presence {
		for i := range all {
			f(&all[i])
		}
		return all
	})
}

// attending is a roster that attends in another way.
func attending(name, seen string, f func(ctx context.Context, b *broken, all []store.Presence) error) defect {
	return defect{name, func(b *broken) {
		b.attend = func(ctx context.Context, all []store.Presence) error { return f(ctx, b, all) }
	}, seen}
}

// leaving is a roster that removes in another way.
func leaving(name, seen string, f func(ctx context.Context, b *broken, workerType string, ids []string) error) defect {
	return defect{name, func(b *broken) {
		b.leave = func(ctx context.Context, workerType string, ids []string) error { return f(ctx, b, workerType, ids) }
	}, seen}
}

// renamed are labels by other names.
func renamed(rename func(name string) string) func(p *store.Presence) {
	return func(p *store.Presence) {
		labels := map[string]string{}
		for name, value := range p.Labels {
			labels[rename(name)] = value
		}
		p.Labels = labels
	}
}

// rosterDefects are those of what a roster keeps.
var rosterDefects = []defect{
	each("a field that is forgotten", "roster/every_field_of_a_presence", func(p *store.Presence) { p.Uncertainty = 0 }),
	each("an offset that is kept in microseconds", "roster/every_field_of_a_presence", func(p *store.Presence) { p.Offset = p.Offset.Truncate(time.Microsecond) }),
	each("a time of 1970 for none", "roster/a_presence_without_what_may_be_left_out", func(p *store.Presence) {
		if p.FailedIn.IsZero() {
			p.FailedIn = store.FromMillis(0)
		}
	}),
	each("a score of none that is 0", "roster/a_score_of_0_is_not_none", func(p *store.Presence) {
		if p.Score == nil {
			p.Score = new(0.0)
		}
	}),
	each("a score of 0 that is none", "roster/a_score_of_0_is_not_none", func(p *store.Presence) {
		if p.Score != nil && *p.Score == 0 {
			p.Score = nil
		}
	}),
	each("a score that is kept in 32 bits", "roster/a_score_of_0_is_not_none", func(p *store.Presence) {
		if p.Score != nil {
			p.Score = new(float64(float32(*p.Score)))
		}
	}),
	each("an offset that is kept in 53 bits, and cut off", "roster/the_numbers_of_a_presence", func(p *store.Presence) {
		p.Offset = max(min(p.Offset, 1<<53-1), -1<<53)
	}),
	each("a time that comes back local", "roster/the_times_of_a_presence", func(p *store.Presence) { p.Seen = p.Seen.In(time.FixedZone("x", 3600)) }),
	attending("a time that is rounded", "roster/the_times_of_a_presence", func(ctx context.Context, b *broken, all []store.Presence) error {
		all = slices.Clone(all)
		for i := range all {
			all[i].Seen = all[i].Seen.Round(time.Millisecond)
		}
		return b.Ledger.Attend(ctx, all)
	}),
	each("a text that is trimmed", "roster/the_texts_of_a_presence", func(p *store.Presence) { p.Why = strings.TrimSpace(p.Why) }),
	each("a text without its control characters", "roster/the_texts_of_a_presence", func(p *store.Presence) { p.Labels = escaped(p.Labels) }),
	each("names of labels that are paths", "roster/the_names_of_labels", renamed(func(name string) string { name, _, _ = strings.Cut(name, "."); return name })),
	each("names of labels without dollars", "roster/the_names_of_labels", renamed(func(name string) string { return strings.TrimPrefix(name, "$") })),
	each("names of labels in lower case", "roster/the_names_of_labels", renamed(strings.ToLower)),
	listed("a large presence that is passed over", "roster/a_presence_as_large_as_may_be", func(all []store.Presence) []store.Presence {
		return slices.DeleteFunc(all, func(p store.Presence) bool { return len(p.Why) == store.MaxReason })
	}),
	attending("an Attend that keeps the first", "roster/a_second_Attend_replaces", func(ctx context.Context, b *broken, all []store.Presence) error {
		there, _ := b.Ledger.Presences(ctx, "")
		return b.Ledger.Attend(ctx, slices.DeleteFunc(slices.Clone(all), func(p store.Presence) bool {
			return p.Check() == nil && slices.ContainsFunc(there, func(other store.Presence) bool { return store.ComparePresences(p, other) == 0 })
		}))
	}),
	attending("an Attend that merges", "roster/a_second_Attend_replaces", func(ctx context.Context, b *broken, all []store.Presence) error {
		there, _ := b.Ledger.Presences(ctx, "")
		all = slices.Clone(all)
		for i := range all {
			for _, other := range there {
				if store.ComparePresences(all[i], other) == 0 && all[i].Score == nil {
					all[i].Score = other.Score
				}
			}
		}
		return b.Ledger.Attend(ctx, all)
	}),
	listed("a key that is listed twice", "roster/a_key_that_is_twice", func(all []store.Presence) []store.Presence {
		if len(all) == 2 {
			return append(all[:1:1], all...)
		}
		return all
	}),
	leaving("a Leave that removes all of the type", "roster/Leave_removes_the_presences_that_it_names", func(ctx context.Context, b *broken, workerType string, ids []string) error {
		for _, p := range must(b.Ledger.Presences(ctx, workerType)) {
			if p.WorkerType == workerType {
				ids = append(ids, p.ID)
			}
		}
		return b.Ledger.Leave(ctx, workerType, ids)
	}),
	leaving("a Leave of any type", "roster/Leave_removes_the_presences_that_it_names", func(ctx context.Context, b *broken, _ string, ids []string) (err error) {
		for _, p := range must(b.Ledger.Presences(ctx, "")) {
			err = errors.Join(err, b.Ledger.Leave(ctx, p.WorkerType, ids))
		}
		return err
	}),
	leaving("a Leave to which absence is an error", "roster/Leave_removes_the_presences_that_it_names", func(ctx context.Context, b *broken, workerType string, ids []string) error {
		there := must(b.Ledger.Presences(ctx, workerType))
		for _, id := range ids {
			if !slices.ContainsFunc(there, func(p store.Presence) bool { return p.ID == id }) {
				return store.ErrNotFound
			}
		}
		return b.Ledger.Leave(ctx, workerType, ids)
	}),
	leaving("a Leave without a type that is one of all", "roster/Leave_removes_the_presences_that_it_names", func(ctx context.Context, b *broken, workerType string, ids []string) (err error) {
		types := []string{workerType}
		if workerType == "" {
			types = []string{"job", "mail"}
		}
		for _, name := range types {
			err = errors.Join(err, b.Ledger.Leave(ctx, name, ids))
		}
		return err
	}),
	{"worker types by any case", func(b *broken) {
		b.presences = func(ctx context.Context, workerType string) ([]store.Presence, error) {
			return slices.DeleteFunc(must(b.Ledger.Presences(ctx, "")), func(p store.Presence) bool {
				return workerType != "" && !strings.EqualFold(p.WorkerType, workerType)
			}), nil
		}
	}, "roster/worker_types_with_kindred_names"},
	{"worker types by their beginning", func(b *broken) {
		b.presences = func(ctx context.Context, workerType string) ([]store.Presence, error) {
			return slices.DeleteFunc(must(b.Ledger.Presences(ctx, "")), func(p store.Presence) bool {
				return !strings.HasPrefix(p.WorkerType, workerType)
			}), nil
		}
	}, "roster/worker_types_with_kindred_names"},
	listed("an order by the whole key as text", "roster/presences_are_listed_in_the_order", func(all []store.Presence) []store.Presence {
		slices.SortFunc(all, func(a, b store.Presence) int { return strings.Compare(a.WorkerType+":"+a.ID, b.WorkerType+":"+b.ID) })
		return all
	}),
	attending("an invalid presence that is left out", "roster/an_invalid_presence_is_refused", func(ctx context.Context, b *broken, all []store.Presence) error {
		return b.Ledger.Attend(ctx, slices.DeleteFunc(slices.Clone(all), func(p store.Presence) bool { return p.Check() != nil }))
	}),
	attending("an invalid presence before which others are stored", "roster/an_invalid_presence_is_refused", func(ctx context.Context, b *broken, all []store.Presence) error {
		for _, p := range all {
			if err := b.Ledger.Attend(ctx, []store.Presence{p}); err != nil {
				return err
			}
		}
		return nil
	}),
	attending("an empty batch that is refused", "roster/an_empty_batch_is_nothing", func(ctx context.Context, b *broken, all []store.Presence) error {
		if len(all) == 0 {
			return errors.New("nothing to insert")
		}
		return b.Ledger.Attend(ctx, all)
	}),
	leaving("a Leave of none that removes all", "roster/an_empty_batch_is_nothing", func(ctx context.Context, b *broken, workerType string, ids []string) error {
		if len(ids) == 0 {
			ids = []string{"a"}
		}
		return b.Ledger.Leave(ctx, workerType, ids)
	}),
	attending("a batch of which 100 are stored", "roster/a_batch_of_120", func(ctx context.Context, b *broken, all []store.Presence) error {
		return b.Ledger.Attend(ctx, all[:min(100, len(all))])
	}),
	listed("a list of one page", "roster/a_batch_of_120", func(all []store.Presence) []store.Presence { return all[:min(100, len(all))] }),
	leaving("a Leave of one page", "roster/a_batch_of_120", func(ctx context.Context, b *broken, workerType string, ids []string) error {
		return b.Ledger.Leave(ctx, workerType, ids[:min(100, len(ids))])
	}),
	{"a batch that is kept as it is", func(b *broken) {
		var last []store.Presence
		b.attend = func(ctx context.Context, all []store.Presence) error {
			last = all
			return b.Ledger.Attend(ctx, all)
		}
		b.presences = func(context.Context, string) ([]store.Presence, error) { return last, nil }
	}, "roster/what_the_caller_changes_afterwards"},
}

// must is a listing without its error.
func must(all []store.Presence, _ error) []store.Presence { return all }

// escaped are labels whose control characters are shown.
func escaped(labels map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range labels {
		all[name] = strings.Trim(fmt.Sprintf("%q", value), `"`)
	}
	return all
}
