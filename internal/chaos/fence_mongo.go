//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mongoFence is a collection for each worker type with the documents {_id: n, n,
// token}, n = 1, 2, 3 …, that are only ever inserted. The server's conditional
// updates aren't atomic, but its inserts are, and that is enough:
//
//   - a document n, once there, never changes and never goes;
//   - n+1 is inserted only by a writer that has read document n and found its
//     token no higher than its own; the unique _id lets one of them through, and
//     the others read n+1 and decide anew.
//
// So by induction the tokens never go down from n to n+1. Reading an old state
// does no harm: its successor is there already, and the insert fails.
type mongoFence struct {
	client *mongo.Client
	heads  map[string]head
}

// head is the newest write that is known.
type head struct{ n, token int64 }

// writeDocument is one write. The test server finds a text by its index, but a
// number only by reading all.
type writeDocument struct {
	ID    string `bson:"_id"`
	N     int64  `bson:"n"`
	Token int64  `bson:"token"`
}

func idOf(n int64) string { return fmt.Sprintf("%012d", n) }

func openMongoFence(uri string) (fence, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return nil, err
	}
	return &mongoFence{client: client, heads: map[string]head{}}, nil
}

func (f *mongoFence) collection(workerType string) *mongo.Collection {
	return f.client.Database("fence").Collection(workerType)
}

func (f *mongoFence) write(ctx context.Context, workerType string, token int64) (bool, error) {
	c := f.collection(workerType)
	for {
		h, err := f.newest(ctx, c, f.heads[workerType])
		if err != nil {
			return false, err
		}
		f.heads[workerType] = h
		if token < h.token {
			return false, nil
		}
		next := head{h.n + 1, token}
		_, err = c.InsertOne(ctx, writeDocument{idOf(next.n), next.n, next.token})
		switch {
		case err == nil:
			f.heads[workerType] = next
			return true, nil
		case !mongo.IsDuplicateKeyError(err):
			return false, err
		}
	}
}

// newest finds the document that has no successor: numbers have no gaps, so it
// doubles its steps until one is missing, and halves them from there. (A sorted
// find reads the whole collection on the test server.)
func (f *mongoFence) newest(ctx context.Context, c *mongo.Collection, from head) (head, error) {
	known, step, growing := from, int64(1), true
	for step > 0 {
		var d writeDocument
		err := c.FindOne(ctx, bson.D{{Key: "_id", Value: idOf(known.n + step)}}).Decode(&d)
		switch {
		case err == nil:
			known = head{d.N, d.Token}
		case errors.Is(err, mongo.ErrNoDocuments):
			growing = false
		default:
			return head{}, err
		}
		if growing {
			step *= 2
		} else {
			step /= 2
		}
	}
	return known, nil
}

func (f *mongoFence) writes(ctx context.Context, workerType string) ([]int64, error) {
	cursor, err := f.collection(workerType).Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	var found []writeDocument
	if err := cursor.All(ctx, &found); err != nil {
		return nil, err
	}
	tokens := make([]int64, len(found))
	for _, d := range found {
		if d.N < 1 || d.N > int64(len(tokens)) || tokens[d.N-1] != 0 {
			return nil, fmt.Errorf("fence: write %d of %d: numbers must have no gaps", d.N, len(tokens))
		}
		tokens[d.N-1] = d.Token
	}
	return tokens, nil
}

func (f *mongoFence) close(ctx context.Context) { _ = f.client.Disconnect(ctx) }
