package s3

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting() // for slots
	m.Run()
}

func TestOfAppendsByManyProcessesOneWinsEachKey(t *testing.T) {
	t.Parallel()
	uri := uriOf(s3peer.Shared(t), newBucket()+"/jobs")
	ready(t, Options{URI: uri})
	storetest.ProcessRace{
		At: uri, Processes: 3, Goroutines: 4, Rounds: 40,
		Env: []string{"AWS_ACCESS_KEY_ID=" + s3peer.ID, "AWS_SECRET_ACCESS_KEY=" + s3peer.Secret},
	}.Run(t)
}
