package workerlease_test

import (
	"context"
	"slices"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// The ledger of example_store_test.go keeps what store.Ledger promises, as far as its
// users copy it: storetest asks for more, such as documents of other programs.
func TestTheStoreOfTheExampleKeepsTheContract(t *testing.T) {
	ctx, s := context.Background(), &shelf{}
	r := store.Record{
		WorkerType: "job", Kind: store.KindGrant, InstanceID: "a", Claim: "c",
		WindowStart: noon, WindowEnd: noon.AddDate(0, 0, 1), Token: noon.UnixMilli(),
	}
	for seq := range int64(3) {
		r.Seq = seq + 1
		if err := s.Append(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(ctx, r); err != store.ErrConflict {
		t.Errorf("Append to a key that exists = %v, want ErrConflict", err)
	}
	var seqs []int64
	tail, _, err := s.Tail(ctx, "job", 2)
	for _, r := range tail {
		seqs = append(seqs, r.Seq)
	}
	if !slices.Equal(seqs, []int64{3, 2}) || err != nil {
		t.Errorf("Tail = %v, %v, want 3 and 2", seqs, err)
	}
	if n, err := s.Trim(ctx, "job", 9); n != 2 || err != nil {
		t.Errorf("Trim = %d, %v, want all but the head", n, err)
	}
	if _, err := s.Get(ctx, "job", 1); err != store.ErrNotFound {
		t.Errorf("Get of a trimmed record = %v, want ErrNotFound", err)
	}
	if got, err := s.Get(ctx, "job", 3); got.Seq != 3 || err != nil {
		t.Errorf("Get of the head = %v, %v", got, err)
	}
	if types, err := s.WorkerTypes(ctx); !slices.Equal(types, []string{"job"}) || err != nil {
		t.Errorf("WorkerTypes = %q, %v", types, err)
	}
}
