package mongofence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/slotlease/slotlease/workerlease/fence"
)

// The fields that the package adds to documents.
const (
	Field   = "fence"        // the token of the last write, an int64
	Deleted = "fenceDeleted" // true in a tombstone, absent otherwise
)

var (
	// ErrExists says that a document to insert exists.
	ErrExists = errors.New("the document exists")
	// ErrUnfenced says that a document has no token.
	ErrUnfenced = errors.New("the document has no field " + Field + " with an integer")
)

// Live returns a filter of the documents that aren't tombstones.
func Live() bson.D {
	return bson.D{{Key: Deleted, Value: bson.D{{Key: "$exists", Value: false}}}}
}

// Insert stores document, which must not have another _id than id, in place of nothing or
// of a tombstone. It fails with [ErrExists] if there is a document.
func Insert(ctx context.Context, c *mongo.Collection, id any, token int64, document any) error {
	return replace(ctx, c, id, token, document, true)
}

// Replace stores document, which must not have another _id than id, in place of what is
// there, if anything.
func Replace(ctx context.Context, c *mongo.Collection, id any, token int64, document any) error {
	return replace(ctx, c, id, token, document, false)
}

// Delete puts a tombstone in place of the document, also if there is none.
func Delete(ctx context.Context, c *mongo.Collection, id any, token int64) error {
	return write(ctx, c, id, token, false, func(c *mongo.Collection, filter bson.D) error {
		tombstone := bson.D{{Key: "_id", Value: id}, {Key: Field, Value: token}, {Key: Deleted, Value: true}}
		_, err := c.ReplaceOne(ctx, filter, tombstone, options.Replace().SetUpsert(true))
		return err
	})
}

// Update applies a document of update operators, such as $set. It creates the document if
// there is none. On a tombstone it does the same, since that has no other fields. An
// update must not name the fields of this package.
func Update(ctx context.Context, c *mongo.Collection, id any, token int64, update any) error {
	fields, err := decode(update)
	if err != nil {
		return err
	}
	for _, operator := range fields {
		if !strings.HasPrefix(operator.Key, "$") {
			return fmt.Errorf("mongofence: %q is no update operator", operator.Key)
		}
		if named, ok := operator.Value.(bson.D); !ok || names(named, operator.Key == "$rename") {
			return fmt.Errorf("mongofence: the operator %s is no document, or names a field of the fence", operator.Key)
		}
	}
	fields = with(fields, "$set", bson.E{Key: Field, Value: token})
	fields = with(fields, "$unset", bson.E{Key: Deleted, Value: ""})
	return write(ctx, c, id, token, false, func(c *mongo.Collection, filter bson.D) error {
		_, err := c.UpdateOne(ctx, filter, fields, options.UpdateOne().SetUpsert(true))
		return err
	})
}

func replace(ctx context.Context, c *mongo.Collection, id any, token int64, document any, anew bool) error {
	fields, err := decode(document)
	if err != nil {
		return err
	}
	if names(fields, false) {
		return errors.New("mongofence: the document names a field of the fence")
	}
	fields = append(fields, bson.E{Key: Field, Value: token})
	return write(ctx, c, id, token, anew, func(c *mongo.Collection, filter bson.D) error {
		_, err := c.ReplaceOne(ctx, filter, fields, options.Replace().SetUpsert(true))
		return err
	})
}

// write runs one upsert, and finds out why it failed. Where two writers create a document
// at once, one fails though its token isn't stale, and tries again: once, since the
// document then exists.
func write(ctx context.Context, c *mongo.Collection, id any, token int64, anew bool, upsert func(*mongo.Collection, bson.D) error) error {
	name := fmt.Sprint(c.Name(), "/", id)
	if token < 1 {
		return fmt.Errorf("fence %q: the token is %d, it must be at least 1", name, token)
	}
	if !selectsOne(id) {
		return fmt.Errorf("mongofence: the id %v selects many documents, or none: it must be no operator, pattern or array", id)
	}
	c = c.Clone(options.Collection().SetWriteConcern(writeconcern.Majority()))
	filter := bson.D{{Key: "_id", Value: id}, {Key: Field, Value: bson.D{{Key: "$lte", Value: token}}}}
	if anew {
		filter = append(filter, bson.E{Key: Deleted, Value: true})
	}
	for tries := 1; ; tries++ {
		err := upsert(c, filter)
		if err == nil {
			return nil
		}
		if !mongo.IsDuplicateKeyError(err) {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		found, e := c.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Raw() // A struct's fields match names of any case.
		switch {
		case errors.Is(e, mongo.ErrNoDocuments): // another unique index is in the way
			return fmt.Errorf("writing %s: %w", name, err)
		case e != nil:
			return fmt.Errorf("reading the fence of %s: %w", name, e)
		}
		newest, integer := integer(found.Lookup(Field))
		deleted, _ := found.Lookup(Deleted).BooleanOK()
		switch {
		case !integer:
			return fmt.Errorf("writing %s: %w", name, ErrUnfenced)
		case newest > token:
			return fence.Compare(name, token, newest)
		case anew && !deleted:
			return fmt.Errorf("inserting %s: %w", name, ErrExists)
		case tries > 1:
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
}

// integer returns the number of a field, if it is a whole one.
func integer(field bson.RawValue) (n int64, ok bool) {
	if f, fraction := field.DoubleOK(); fraction && f != math.Trunc(f) {
		return 0, false
	}
	return field.AsInt64OK()
}

// selectsOne reports that a filter takes id for a value, as MongoDB allows it for an _id.
func selectsOne(id any) bool {
	kind, value, err := bson.MarshalValue(id)
	switch {
	case err != nil || kind == bson.TypeRegex || kind == bson.TypeArray:
		return false
	case kind != bson.TypeEmbeddedDocument:
		return true
	}
	fields, err := bson.Raw(value).Elements()
	return err == nil && !slices.ContainsFunc(fields, func(e bson.RawElement) bool { return strings.HasPrefix(e.Key(), "$") })
}

// decode returns the fields of any document, in order, in a copy.
func decode(document any) (fields bson.D, err error) {
	raw, err := bson.Marshal(document)
	if err == nil {
		err = bson.Unmarshal(raw, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("mongofence: encoding: %w", err)
	}
	return fields, nil
}

// names reports whether fields, or what they are renamed to, are those of the fence.
func names(fields bson.D, renamed bool) bool {
	own := func(field string) bool {
		first, _, _ := strings.Cut(field, ".")
		return first == Field || first == Deleted
	}
	for _, f := range fields {
		if to, ok := f.Value.(string); own(f.Key) || renamed && ok && own(to) {
			return true
		}
	}
	return false
}

// with adds a field to an operator of an update.
func with(update bson.D, operator string, field bson.E) bson.D {
	for i, o := range update {
		if named, ok := o.Value.(bson.D); ok && o.Key == operator {
			update[i].Value = append(named, field)
			return update
		}
	}
	return append(update, bson.E{Key: operator, Value: bson.D{field}})
}
