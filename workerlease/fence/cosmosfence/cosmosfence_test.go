package cosmosfence_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/cosmosfence"
)

var key = azcosmos.NewPartitionKeyString("p")

func container(t *testing.T) *azcosmos.ContainerClient {
	t.Helper()
	uri := cosmospeer.URI(t)
	if cosmospeer.Key() == "" {
		t.Skip("COSMOS_URI is set without COSMOS_KEY, which this test needs")
	}
	credential, err := azcosmos.NewKeyCredential(cosmospeer.Key())
	if err != nil {
		t.Fatal(err)
	}
	o := &azcosmos.ClientOptions{}
	o.InsecureAllowCredentialWithHTTP = true
	client, err := azcosmos.NewClientWithKey(endpoint(uri), credential, o)
	if err != nil {
		t.Fatal(err)
	}
	name, ctx := "cosmosfence-"+rand.Text(), t.Context()
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil); err != nil {
		t.Fatal(err)
	}
	d, err := client.NewDatabase(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = d.Delete(context.WithoutCancel(t.Context()), nil)
		client.Close()
	})
	properties := azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}
	if _, err := d.CreateContainer(ctx, properties, nil); err != nil {
		t.Fatal(err)
	}
	c, err := d.NewContainer("c")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// endpoint turns a URI of store/cosmos into one of the SDK.
func endpoint(uri string) string {
	account, query, _ := strings.Cut(strings.TrimPrefix(uri, "cosmos://"), "?")
	if strings.Contains(query, "insecureHTTP=true") {
		return "http://" + account
	}
	return "https://" + account
}

// note appends its token to the item's history, so that the order of all writes is seen.
func note(ctx context.Context, c *azcosmos.ContainerClient, token int64) error {
	return cosmosfence.Update(ctx, c, key, "a", token, func(old cosmosfence.Item) (cosmosfence.Item, error) {
		writes, _ := old["writes"].([]any)
		return cosmosfence.Item{"id": "a", "pk": "p", "writes": append(writes, token)}, nil
	})
}

func history(t *testing.T, c *azcosmos.ContainerClient) (found []float64) {
	t.Helper()
	stop := errors.New("only read")
	err := cosmosfence.Update(t.Context(), c, key, "a", 1<<40, func(old cosmosfence.Item) (cosmosfence.Item, error) {
		writes, _ := old["writes"].([]any)
		for _, w := range writes {
			found = append(found, w.(float64))
		}
		return nil, stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	return found
}

func TestAStaleTokenIsRefused(t *testing.T) {
	c, ctx := container(t), t.Context()
	for _, token := range []int64{1, 1, 2} {
		if err := note(ctx, c, token); err != nil {
			t.Fatal(err)
		}
	}
	var stale *fence.StaleError
	if err := note(ctx, c, 1); !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "a", Token: 1, Newest: 2}) {
		t.Errorf("a stale write: %v", err)
	}
	if found := history(t, c); len(found) != 3 {
		t.Errorf("writes: %v", found)
	}
}

// A newer holder writes between the read and the write of an older one.
func TestAWriteBetweenIsNoticed(t *testing.T) {
	c, ctx := container(t), t.Context()
	for _, first := range []int64{1, 3} { // that creates the item, and that replaces it
		err := cosmosfence.Update(ctx, c, key, "a", first, func(cosmosfence.Item) (cosmosfence.Item, error) {
			return cosmosfence.Item{"id": "a", "pk": "p"}, note(ctx, c, first+1)
		})
		if !errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d after %d: %v", first, first+1, err)
		}
	}
	if found := history(t, c); len(found) != 2 || found[1] != 4 {
		t.Errorf("writes: %v", found)
	}
}

func TestManyHolders(t *testing.T) {
	c, ctx := container(t), t.Context()
	var all sync.WaitGroup
	for _, i := range mathrand.Perm(20) {
		all.Go(func() {
			if err := note(ctx, c, int64(i/2+1)); err != nil && !errors.Is(err, fence.ErrStale) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	found := history(t, c)
	for i := 1; i < len(found); i++ {
		if found[i] < found[i-1] {
			t.Fatalf("writes: %v", found)
		}
	}
	if len(found) == 0 || found[len(found)-1] != 10 {
		t.Errorf("writes: %v", found)
	}
}

func TestBatch(t *testing.T) {
	if os.Getenv("COSMOS_URI") == "" {
		t.Skip("the peer answers a transactional batch with 500: set COSMOS_URI to test it with Cosmos DB")
	}
	c, ctx := container(t), t.Context()
	batch := func(token int64, id string) error {
		return cosmosfence.Batch(ctx, c, key, cosmosfence.Item{"id": "f", "pk": "p"}, token, func(b *azcosmos.TransactionalBatch) error {
			b.CreateItem([]byte(`{"id":"`+id+`","pk":"p"}`), nil)
			return nil
		})
	}
	if err := errors.Join(batch(1, "x"), batch(2, "y")); err != nil {
		t.Fatal(err)
	}
	if err := batch(1, "z"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a stale batch: %v", err)
	}
	if _, err := c.ReadItem(ctx, key, "y", nil); err != nil {
		t.Error(err)
	}
	if _, err := c.ReadItem(ctx, key, "z", nil); err == nil {
		t.Error("the stale batch was stored")
	}
	if err := batch(2, "y"); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("a batch with an item that exists: %v", err)
	}
}

// Names of properties differ by case, too: the item has a property Fence of its own.
func TestAPropertyOfAnotherCaseIsNoFence(t *testing.T) {
	for name, value := range map[string]string{"text": `"garden"`, "number": "1"} {
		t.Run(name, func(t *testing.T) {
			c, ctx := container(t), t.Context()
			body := `{"id": "a", "pk": "p", "fence": 5, "Fence": ` + value + `}`
			if _, err := c.CreateItem(ctx, key, []byte(body), nil); err != nil {
				t.Fatal(err)
			}
			keep := func(old cosmosfence.Item) (cosmosfence.Item, error) { return old, nil }
			var stale *fence.StaleError
			if err := cosmosfence.Update(ctx, c, key, "a", 3, keep); !errors.As(err, &stale) || stale.Newest != 5 {
				t.Errorf("Update() with 3 = %v, want that it is stale since 5", err)
			}
			if err := cosmosfence.Update(ctx, c, key, "a", 6, keep); err != nil {
				t.Errorf("Update() with 6 = %v", err)
			}
		})
	}
}
