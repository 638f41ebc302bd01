package cosmosfence_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/cosmosfence"
)

// account is a fake of Cosmos DB with one item, the fence's, that answers as Microsoft's documentation
// describes: the peer of these tests has no transactional batches.
// https://learn.microsoft.com/azure/cosmos-db/nosql/transactional-batch
type account struct {
	t       *testing.T
	token   int64 // of the fence; 0: there is none
	changes int   // how often the fence was written
	race    int64 // the token that another writer stores between the next read and the batch
	refuses int   // the status of the second operation of a batch; 0: it is done
	batches int
}

// operation is one of a batch.
type operation struct {
	OperationType, ID, IfMatch string
	ResourceBody               map[string]any
}

func (a *account) etag() string { return fmt.Sprintf("%q", fmt.Sprint("etag-", a.changes)) }

// Do answers a request.
func (a *account) Do(r *http.Request) (*http.Response, error) {
	answer := func(status int, body any) (*http.Response, error) {
		text, err := json.Marshal(body)
		return &http.Response{StatusCode: status, Header: http.Header{"Etag": {a.etag()}, "Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
	}
	switch {
	case r.Method == http.MethodGet && strings.Trim(r.URL.Path, "/") == "":
		return answer(http.StatusOK, map[string]any{"id": "fake"})
	case r.Method == http.MethodGet && a.token == 0:
		return answer(http.StatusNotFound, map[string]any{"code": "NotFound"})
	case r.Method == http.MethodGet:
		reply, err := answer(http.StatusOK, map[string]any{"id": "fence", "pk": "p", "fence": a.token})
		if a.race > 0 {
			a.token, a.race, a.changes = a.race, 0, a.changes+1
		}
		return reply, err
	case r.Method == http.MethodPost && r.Header.Get("x-ms-cosmos-is-batch-request") == "True":
		return a.batch(r, answer)
	}
	a.t.Errorf("%s %s is not expected", r.Method, r.URL)
	return answer(http.StatusBadRequest, nil)
}

func (a *account) batch(r *http.Request, answer func(int, any) (*http.Response, error)) (*http.Response, error) {
	a.batches++
	if r.Header.Get("x-ms-cosmos-batch-atomic") != "True" || r.Header.Get("x-ms-documentdb-partitionkey") != `["p"]` {
		a.t.Errorf("a batch with the headers %v, want it to be atomic, in one partition", r.Header)
	}
	var operations []operation
	if err := json.NewDecoder(r.Body).Decode(&operations); err != nil || len(operations) != 2 {
		a.t.Fatalf("a batch of %d operations, %v; want that of the fence and another one", len(operations), err)
	}
	f, results := operations[0], []map[string]any{{"statusCode": 201}, {"statusCode": 201}}
	fails := func(first, second int) {
		results[0]["statusCode"], results[1]["statusCode"] = first, second
	}
	switch {
	case f.OperationType == "Create" && a.token > 0:
		fails(http.StatusConflict, http.StatusFailedDependency)
	case f.OperationType == "Replace" && f.IfMatch != a.etag():
		fails(http.StatusPreconditionFailed, http.StatusFailedDependency)
	case a.refuses > 0:
		fails(http.StatusFailedDependency, a.refuses)
	default:
		token, _ := f.ResourceBody["fence"].(float64)
		a.token, a.changes = int64(token), a.changes+1
		return answer(http.StatusOK, results)
	}
	return answer(http.StatusMultiStatus, results)
}

func (a *account) write(token int64) error {
	o := &azcosmos.ClientOptions{}
	o.Transport = a
	credential, err := azcosmos.NewKeyCredential("ZmFrZQ==")
	if err != nil {
		a.t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey("https://fake.test", credential, o)
	if err != nil {
		a.t.Fatal(err)
	}
	defer client.Close()
	c, err := client.NewContainer("d", "c")
	if err != nil {
		a.t.Fatal(err)
	}
	return cosmosfence.Batch(a.t.Context(), c, key, cosmosfence.Item{"id": "fence", "pk": "p"}, token, func(b *azcosmos.TransactionalBatch) error {
		b.CreateItem([]byte(`{"id": "invoice", "pk": "p"}`), nil)
		return nil
	})
}

func TestABatchOfAFakeAccount(t *testing.T) {
	for name, c := range map[string]struct {
		account account
		token   int64
		batches int
		want    error // nil: it is stored
		newest  int64
	}{
		"the first":                      {account{}, 1, 1, nil, 1},
		"a newer one":                    {account{token: 1}, 2, 1, nil, 2},
		"the same":                       {account{token: 2}, 2, 1, nil, 2},
		"a stale one":                    {account{token: 3}, 2, 0, fence.ErrStale, 3},
		"an older one comes between":     {account{token: 1, race: 2}, 3, 2, nil, 3},
		"a newer one comes between":      {account{token: 1, race: 3}, 2, 1, fence.ErrStale, 3},
		"the other operation is refused": {account{token: 1, refuses: http.StatusConflict}, 2, 1, errRefused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.account
			a.t = t
			err := a.write(c.token)
			switch {
			case c.want == nil && err != nil, c.want != nil && err == nil, errors.Is(c.want, fence.ErrStale) != errors.Is(err, fence.ErrStale):
				t.Errorf("Batch() = %v, want %v", err, c.want)
			}
			if a.token != c.newest || a.batches != c.batches {
				t.Errorf("the fence has %d after %d batches, want %d after %d", a.token, a.batches, c.newest, c.batches)
			}
		})
	}
}

var errRefused = errors.New("the operation is refused")
