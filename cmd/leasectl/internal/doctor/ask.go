package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/workerlease"
)

const (
	// samples is how often the clock is read, and trips how often the ledger.
	samples = 5
	trips   = 10
	// newest is how many records of each type are read. A healthy ledger keeps no fewer.
	newest = 100
	// mostTypes is how many worker types are looked at.
	mostTypes = 100
	// mostOfAsk bounds one question, or a fifth of --timeout if that is more.
	mostOfAsk = 2 * time.Second
)

// facts are what the ledger said.
type facts struct {
	at       time.Time // of the store; zero if it isn't known
	samples  []sample
	clockErr error

	types    inspect.Types
	left     int // types that were not looked at
	typesErr error
	named    string // --worker-type
	unknown  error  // there are worker types, but not the one that is named
	ledgers  []ledger

	trips    []time.Duration
	tripsErr error

	workers    []workerlease.Candidate
	workersErr error
	unlisted   error // which workers can't be listed beside these

	watchErr error // why no hints come; nil if they may
}

// ledger is what is known of the ledger of one worker type.
type ledger struct {
	name    string
	records []store.Record // the newest
	oldest  store.Record   // the oldest that is kept
	count   int64          // of records, about
	err     error
}

// ask asks the ledger. Each question has its limit: half of the time that is left, and at most 2 s, or a fifth of --timeout if that is more.
func ask(ctx context.Context, l store.Ledger, workerType string, timeout time.Duration) facts {
	f, unwatched := facts{named: workerType}, watch(ctx, l)
	limited := func(do func(ctx context.Context)) {
		ctx, cancel := context.WithTimeout(ctx, min(max(mostOfAsk, timeout/5), time.Until(deadline(ctx))/2))
		defer cancel()
		do(ctx)
	}
	limited(func(ctx context.Context) { f.samples, f.clockErr = readClock(ctx, l) })
	if n := len(f.samples); n > 0 {
		f.at = f.samples[n-1].stamp.Time
	}
	limited(func(ctx context.Context) {
		f.types, f.typesErr = inspect.TypesIn(ctx, l)
	})
	names := f.types.Valid
	if workerType != "" {
		limited(func(ctx context.Context) { f.unknown = inspect.CheckType(ctx, l, workerType) })
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name != workerType })
	}
	f.left = max(0, len(names)-mostTypes)
	names = names[:len(names)-f.left]
	limited(func(ctx context.Context) { f.ledgers = readLedgers(ctx, l, names) })
	limited(func(ctx context.Context) { f.trips, f.tripsErr = readOften(ctx, l, names) })
	limited(func(ctx context.Context) {
		f.workers, f.workersErr = workerlease.NewClient(l, workerlease.ClientOptions{}).Candidates(ctx, workerType)
		if partial, is := store.As[store.PartialRoster](l); is && f.workersErr == nil {
			f.unlisted = partial.Unlisted()
		}
	})
	f.watchErr = unwatched()
	return f
}

// readLedgers reads the newest records of some worker types.
func readLedgers(ctx context.Context, l store.Ledger, names []string) []ledger {
	all := make([]ledger, len(names))
	_ = storekit.Several(len(names), func(i int) error {
		all[i] = readLedger(ctx, l, names[i])
		return nil
	})
	return all
}

// readLedger reads the newest records of a worker type, and finds the oldest one: old records are deleted from
// the oldest on, so that the keys from that up to the newest are taken.
func readLedger(ctx context.Context, l store.Ledger, name string) ledger {
	found := ledger{name: name}
	found.records, _, found.err = l.Tail(ctx, name, newest)
	reached := reachable(found.records)
	if found.err != nil || len(reached) == 0 {
		return found
	}
	found.oldest, found.count = reached[len(reached)-1], int64(len(reached))
	if pager, ok := store.As[store.Pager](l); ok && len(reached) == newest {
		// Without an answer, what is known is enough to judge by.
		if page, _ := pager.Page(ctx, name, 0, 1); len(page) > 0 {
			found.oldest, found.count = page[0], reached[0].Seq-page[0].Seq+1
		}
	}
	return found
}

// readOften reads the newest record of a worker type again and again, and measures how long that takes.
func readOften(ctx context.Context, l store.Ledger, names []string) (took []time.Duration, err error) {
	name := "doctor" // Any name costs the same trip.
	if len(names) > 0 {
		name = names[0]
	}
	for range trips {
		began := time.Now()
		if _, _, err = l.Tail(ctx, name, 1); err != nil {
			break
		}
		took = append(took, time.Since(began))
	}
	slices.SortFunc(took, cmp.Compare)
	return took, err
}
