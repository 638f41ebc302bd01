package azblob

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting() // for slots
	m.Run()
}

func TestOfAppendsByManyProcessesOneWinsEachKey(t *testing.T) {
	t.Parallel()
	uri := uriOf(azuritepeer.Shared(t), newContainer()+"/jobs")
	ready(t, Options{URI: uri})
	storetest.ProcessRace{
		At: uri, Processes: 3, Goroutines: 4, Rounds: 40,
		Env: []string{"AZURE_STORAGE_KEY=" + azuritepeer.Key},
	}.Run(t)
}
