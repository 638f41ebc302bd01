package memory_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// model is a ledger in the plainest form.
type model map[string]map[int64]store.Record

// followed are the Seqs of a type that can be followed, in order. unreachable reports
// whether there are others.
func (m model) followed(workerType string) (seqs []int64, unreachable bool) {
	for seq := range m[workerType] {
		if seq >= 1 && seq <= store.MaxSeq {
			seqs = append(seqs, seq)
		} else {
			unreachable = true
		}
	}
	slices.Sort(seqs)
	return seqs, unreachable
}

// FuzzLedger plays a script on a ledger and on a model of it. Three bytes are an
// operation: what, on which type, and a number.
func FuzzLedger(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 2, 0, 0, 2, 2, 0, 9, 3, 0, 2, 2, 0, 9, 5, 0, 0})
	f.Add([]byte{0, 1, 7, 1, 1, 255, 1, 1, 0, 2, 1, 1, 3, 1, 200, 2, 1, 3, 4, 1, 7, 4, 1, 8})
	f.Add([]byte{1, 2, 128, 1, 2, 255, 2, 2, 5, 3, 2, 255, 5, 0, 0, 6, 0, 0, 0, 2, 3})
	types := []string{"job", "job.2", "mail"}
	f.Fuzz(func(t *testing.T, script []byte) {
		ctx := context.Background()
		ledger := memory.New(memory.Options{})
		want := model{}
		for ; len(script) >= 3; script = script[3:] {
			workerType, n := types[int(script[1])%len(types)], int64(script[2])
			switch script[0] % 7 {
			case 0:
				r := storetest.Grant(workerType, n)
				err := ledger.Append(ctx, r)
				switch _, taken := want[workerType][n]; {
				case n == 0:
					if !errors.Is(err, store.ErrInvalid) {
						t.Fatalf("Append(seq 0) = %v, want ErrInvalid", err)
					}
				case taken:
					if !errors.Is(err, store.ErrConflict) {
						t.Fatalf("Append(%s) = %v, want ErrConflict", store.Key(workerType, n), err)
					}
				case err != nil:
					t.Fatalf("Append(%s) = %v, want nil", store.Key(workerType, n), err)
				default:
					want.put(r.Truncated())
				}
			case 1:
				// Keys of all sorts: below 1, and above those that are followed.
				r := storetest.Grant(workerType, (n-128)*(store.MaxSeq/100))
				ledger.Put(r)
				want.put(r)
			case 2:
				got, stamp, err := ledger.Tail(ctx, workerType, int(n)-2)
				if err != nil || stamp.IsZero() {
					t.Fatalf("Tail(%s, %d) = %v, %v", workerType, n-2, stamp, err)
				}
				seqs, unreachable := want.followed(workerType)
				if unreachable && (len(got) == 0 || got[0].Seq != 0 || got[0].Defect == "") {
					t.Fatalf("Tail(%s, %d) = %+v, want an unreachable key first", workerType, n-2, got)
				}
				if unreachable {
					got = got[1:]
				}
				slices.Reverse(seqs)
				seqs = seqs[:min(len(seqs), max(0, int(n)-2))]
				if len(got) != len(seqs) {
					t.Fatalf("Tail(%s, %d) = %d records, want %d", workerType, n-2, len(got), len(seqs))
				}
				for i, seq := range seqs {
					if got[i] != want[workerType][seq] {
						t.Fatalf("Tail(%s, %d)[%d] = %+v, want seq %d as it was appended", workerType, n-2, i, got[i], seq)
					}
				}
			case 3:
				deleted, err := ledger.Trim(ctx, workerType, n)
				if wanted := want.trim(workerType, n); err != nil || deleted != wanted {
					t.Fatalf("Trim(%s, %d) = %d, %v, want %d", workerType, n, deleted, err, wanted)
				}
			case 4:
				got, err := ledger.Get(ctx, workerType, n)
				if r, there := want[workerType][n]; got != r || there == errors.Is(err, store.ErrNotFound) || there != (err == nil) {
					t.Fatalf("Get(%s) = %+v, %v, want it there: %v", store.Key(workerType, n), got, err, there)
				}
			case 5:
				got, err := ledger.WorkerTypes(ctx)
				if wanted := want.types(); err != nil || !slices.Equal(got, wanted) {
					t.Fatalf("WorkerTypes() = %v, %v, want %v", got, err, wanted)
				}
			case 6:
				next := ledger.Handle()
				if err := errors.Join(ledger.Close(ctx), ledger.Close(ctx)); err != nil {
					t.Fatalf("Close() twice = %v", err)
				}
				if _, err := ledger.Get(ctx, workerType, n); !errors.Is(err, store.ErrClosed) {
					t.Fatalf("Get() on a closed ledger = %v, want ErrClosed", err)
				}
				ledger = next
			}
		}
	})
}

func (m model) put(r store.Record) {
	if m[r.WorkerType] == nil {
		m[r.WorkerType] = map[int64]store.Record{}
	}
	m[r.WorkerType][r.Seq] = r
}

func (m model) types() []string {
	var types []string
	for name, records := range m {
		if len(records) > 0 {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	return types
}

// trim deletes what Trim must, and counts it.
func (m model) trim(workerType string, before int64) int {
	seqs, _ := m.followed(workerType)
	if len(seqs) == 0 {
		return 0
	}
	head, n := seqs[len(seqs)-1], 0
	for seq := range m[workerType] {
		if seq < before && seq < head {
			delete(m[workerType], seq)
			n++
		}
	}
	return n
}
