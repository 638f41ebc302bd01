package cosmosfence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/workerlease/fence"
)

// Field is the property that holds the token.
const Field = "fence"

// ErrUnfenced says that an item has no token.
var ErrUnfenced = errors.New("the item has no property " + Field + " with an integer")

// Item is the properties of an item, by name. Values are as in package json.
type Item = map[string]any

// Update replaces the item id, or creates it. It calls change with the item as it is, nil
// if there is none, for the item as it should be, with its id and its partition key.
// change may be called many times, until no other writer comes between or ctx ends. Its
// error is returned, and nothing is written then.
func Update(ctx context.Context, c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string, token int64, change func(old Item) (Item, error)) error {
	return loop(ctx, c, key, id, token, func(old Item, etag *azcore.ETag) (int, error) {
		item, err := change(maps.Clone(old))
		if err != nil {
			return 0, err
		}
		body, err := encode(item, id, token)
		if err != nil {
			return 0, err
		}
		if etag == nil {
			_, err = c.CreateItem(ctx, key, body, nil)
		} else {
			_, err = c.ReplaceItem(ctx, key, id, body, &azcosmos.ItemOptions{IfMatchEtag: etag})
		}
		return status(err), err
	})
}

// Batch writes protected items together with the item of their fence. The fence has an id
// and the partition key's properties, nothing else. add puts the writes into a batch that
// has one operation already, of at most 100. It may be called many times, until no other
// writer comes between or ctx ends. If a write of add's fails with 404, 409 or 412, that
// is the error, and nothing is stored.
func Batch(ctx context.Context, c *azcosmos.ContainerClient, key azcosmos.PartitionKey, item Item, token int64, add func(*azcosmos.TransactionalBatch) error) error {
	id, _ := item["id"].(string)
	body, err := encode(item, id, token)
	if err != nil {
		return err
	}
	return loop(ctx, c, key, id, token, func(_ Item, etag *azcore.ETag) (int, error) {
		batch := c.NewTransactionalBatch(key)
		if etag == nil {
			batch.CreateItem(body, nil)
		} else {
			batch.ReplaceItem(id, body, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: etag})
		}
		if err := add(&batch); err != nil {
			return 0, err
		}
		response, err := c.ExecuteTransactionalBatch(ctx, batch, nil)
		if err != nil || response.Success {
			return 0, err
		}
		for i, result := range response.OperationResults {
			if code := int(result.StatusCode); code >= 400 && code != http.StatusFailedDependency {
				err := fmt.Errorf("operation %d of the batch failed with status %d", i, code)
				if i == 0 {
					return code, err
				}
				return 0, err
			}
		}
		return 0, errors.New("the batch failed without a status")
	})
}

// loop reads the fence and writes, until no other writer comes between. write returns the
// status of writing the fence, 0 if that isn't what failed.
func loop(ctx context.Context, c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string, token int64, write func(old Item, etag *azcore.ETag) (int, error)) error {
	if err := fence.Validate(id, token); err != nil {
		return err
	}
	for {
		var old Item
		var etag *azcore.ETag
		found, err := c.ReadItem(ctx, key, id, nil)
		switch {
		case err == nil:
			newest, err := stored(found.Value)
			if err != nil {
				return errors.Join(fmt.Errorf("reading %s: %w", id, ErrUnfenced), err)
			}
			if err := fence.Compare(id, token, newest); err != nil {
				return err
			}
			if err := json.Unmarshal(found.Value, &old); err != nil {
				return fmt.Errorf("reading %s: %w", id, err)
			}
			etag = &found.ETag
		case status(err) != http.StatusNotFound:
			return fmt.Errorf("reading the fence %s: %w", id, err)
		}
		switch code, err := write(old, etag); {
		case err == nil:
			return nil
		case etag == nil && code == http.StatusConflict, etag != nil && code == http.StatusPreconditionFailed:
			if ctx.Err() != nil {
				return fmt.Errorf("writing %s: %w", id, ctx.Err())
			}
		default:
			return fmt.Errorf("writing %s: %w", id, err)
		}
	}
}

// stored returns the token of an item. It takes a map, since the fields of a struct match names of any case.
func stored(item []byte) (newest int64, err error) {
	var properties map[string]json.RawMessage
	if err := json.Unmarshal(item, &properties); err != nil {
		return 0, err
	}
	var token *int64
	if err := json.Unmarshal(properties[Field], &token); err != nil || token == nil {
		return 0, cmp.Or(err, errors.New("it is null"))
	}
	return *token, nil
}

func encode(item Item, id string, token int64) ([]byte, error) {
	if item["id"] != id {
		return nil, fmt.Errorf("cosmosfence: the item has the id %v, it must be %q", item["id"], id)
	}
	item = maps.Clone(item)
	item[Field] = token
	body, err := json.Marshal(item)
	if err != nil {
		return nil, fmt.Errorf("cosmosfence: encoding %s: %w", id, err)
	}
	return body, nil
}

// status is that of a response with an error, or 0.
func status(err error) int {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode
	}
	return 0
}
