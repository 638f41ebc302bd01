package mongo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/slotlease/slotlease/store"
)

var _ store.Roster = (*Ledger)(nil)

// rosterSuffix follows the name of the ledger's collection in that of the roster's.
const rosterSuffix = "_roster"

// attendBatch is how many presences one command writes at most. (FerretDB 1.24 never answers one with 100.)
const attendBatch = 50

// attended is the document of a presence. Labels are a list, since servers don't take all names for fields.
type attended struct {
	Key      string         `json:"_id"`
	Presence store.Presence `json:"presence"`
	Labels   []label        `json:"labels"`
}

type label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// roster is the roster's collection. What is lost of it comes again, so the primary's word is enough, and no
// majority is waited for.
func (l *Ledger) roster() *mongo.Collection {
	to := l.to()
	return to.db.Collection(to.coll.Name()+rosterSuffix, options.Collection().
		SetReadConcern(readconcern.Local()).SetWriteConcern(writeconcern.W1()).SetReadPreference(readpref.Primary()).
		SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true}).SetRegistry(bson.NewRegistry()))
}

// rosterKey is the id of a presence.
func rosterKey(workerType, id string) string { return workerType + ":" + id }

// Attend stores presences in place of those with their keys, one command for 50 of them.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	for i := range presences {
		if err := presences[i].Check(); err != nil {
			return fmt.Errorf("mongo: attend: %w", err)
		}
	}
	return insist(ctx, func(ctx context.Context) error {
		if err := l.open(ctx, "attend", ""); err != nil {
			return err
		}
		for batch := range slices.Chunk(presences, attendBatch) {
			if err := l.attend(ctx, batch); err != nil {
				return l.failed(ctx, "attend", "", err)
			}
		}
		return nil
	})
}

// attend writes a batch. Two that write the same key for the first time may meet: the second one is told so,
// and tries again.
func (l *Ledger) attend(ctx context.Context, presences []store.Presence) error {
	writes := make([]mongo.WriteModel, len(presences))
	for i, p := range presences {
		d := attended{Key: rosterKey(p.WorkerType, p.ID), Presence: p.Truncated()}
		for name, value := range p.Labels {
			d.Labels = append(d.Labels, label{name, value})
		}
		d.Presence.Labels = nil
		writes[i] = mongo.NewReplaceOneModel().SetFilter(bson.D{{Key: fieldID, Value: d.Key}}).SetReplacement(d).SetUpsert(true)
	}
	_, err := l.roster().BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	if hasCode(err, codeDuplicate, codeDuplicateOnUpdate) {
		_, err = l.roster().BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	}
	return err
}

// Leave removes presences.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := store.CheckWorkerType(workerType); err != nil {
		return fmt.Errorf("mongo: leave: %w", err)
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = rosterKey(workerType, id)
	}
	return insist(ctx, func(ctx context.Context) error {
		if err := l.open(ctx, "leave", workerType); err != nil || len(keys) == 0 {
			return err
		}
		_, err := l.roster().DeleteMany(ctx, bson.D{{Key: fieldID, Value: bson.D{{Key: "$in", Value: keys}}}})
		return l.failed(ctx, "leave", workerType, err)
	})
}

// Presences lists the presences of a worker type, or of all. It costs one find.
func (l *Ledger) Presences(ctx context.Context, workerType string) (list []store.Presence, err error) {
	filter := bson.D{}
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, fmt.Errorf("mongo: presences: %w", err)
		}
		filter = bson.D{{Key: fieldID, Value: bson.D{{Key: "$gte", Value: workerType + ":"}, {Key: "$lt", Value: workerType + ";"}}}}
	}
	ctx = outsideSessions(ctx)
	if err := l.open(ctx, "presences", workerType); err != nil {
		return nil, err
	}
	listing, cancel := withoutDate(ctx)
	defer cancel()
	cursor, err := l.roster().Find(listing, filter)
	if err != nil {
		return nil, l.failed(listing, "presences", workerType, err)
	}
	var found []bson.Raw
	if err := cursor.All(listing, &found); err != nil {
		return nil, l.failed(listing, "presences", workerType, err)
	}
	for _, raw := range found {
		if p, ok := presenceOf(raw); ok && (workerType == "" || p.WorkerType == workerType) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, store.ComparePresences)
	return list, nil
}

// presenceOf decodes a document, if it is one that Attend may have written.
func presenceOf(raw bson.Raw) (store.Presence, bool) {
	decoder := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	decoder.UseJSONStructTags()
	var d attended
	if raw.Validate() != nil || decoder.Decode(&d) != nil {
		return store.Presence{}, false
	}
	p := d.Presence.Truncated()
	p.Labels = nil
	for _, each := range d.Labels {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[each.Name] = each.Value
	}
	return p, d.Key == rosterKey(p.WorkerType, p.ID) && p.Check() == nil
}

// createRoster creates the roster's collection, if the user may: it is also made by the first presence.
func (l *Ledger) createRoster(ctx context.Context) error {
	err := l.to().db.CreateCollection(ctx, l.roster().Name())
	if hasCode(err, codeNamespaceExists) || errors.Is(meaning(err), store.ErrDenied) {
		return nil
	}
	return err
}
