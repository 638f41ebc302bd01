package mongo

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// recorded is a reply of MongoDB 5.0.7, as extended JSON.
func recorded(t testing.TB, reply string) bson.D {
	t.Helper()
	var d bson.D
	must(t, "UnmarshalExtJSON()", bson.UnmarshalExtJSON([]byte(reply), false, &d))
	return d
}

// A user with the least rights may list neither the collection nor its indexes.
func TestWhatTheFirstWriteShowsIsRefused(t *testing.T) {
	t.Parallel()
	denied := commandError(codeUnauthorized, "Unauthorized", "not authorized on rec to execute command")
	for _, c := range []struct {
		name, reply string
		want        error
		says        string
	}{
		{
			name:  "a validator",
			reply: `{"n":0,"writeErrors":[{"index":0,"code":121,"codeName":"DocumentValidationFailure","errmsg":"Document failed validation","errInfo":{"failingDocumentId":"w:3","details":{"operatorName":"$type","specifiedAs":{"x":{"$type":"int"}},"reason":"field was missing"}}}],"ok":1}`,
			want:  store.ErrRefused, says: "validator keeps records out: remove it",
		},
		{
			name:  "a view",
			reply: `{"n":0,"writeErrors":[{"index":0,"code":166,"codeName":"CommandNotSupportedOnView","errmsg":"Namespace rec.view is a view, not a collection"}],"ok":1}`,
			want:  store.ErrRefused, says: "a view: use a plain collection",
		},
		{
			name:  "a time series",
			reply: `{"n":1,"writeErrors":[{"index":0,"code":2,"codeName":"BadValue","errmsg":"'t' must be present and contain a valid BSON UTC datetime value"}],"ok":1}`,
			want:  store.ErrRefused, says: "a time series: use a plain collection",
		},
		{
			name:  "another bad value",
			reply: `{"n":0,"writeErrors":[{"index":0,"code":2,"codeName":"BadValue","errmsg":"cannot insert this"}],"ok":1}`,
		},
		{
			name:  "a unique index",
			reply: `{"n":0,"writeErrors":[{"index":0,"code":11000,"codeName":"DuplicateKey","errmsg":"E11000 duplicate key error collection: rec.plain index: u dup key: { workerType: \"w\" }","keyPattern":{"workerType":1},"keyValue":{"workerType":"w"}}],"ok":1}`,
			want:  store.ErrRefused, says: "unique index over workerType keeps records out: drop it",
		},
		{
			name:  "a unique index named like that of the key",
			reply: `{"n":0,"writeErrors":[{"index":0,"code":11000,"errmsg":"E11000 duplicate key error collection: rec.plain index: _id_ dup key: { claim: \"w\" }","keyPattern":{"claim":1,"_id":1}}],"ok":1}`,
			want:  store.ErrRefused, says: "unique index over claim, _id",
		},
		{
			name:  "a key that is taken",
			reply: `{"n":0,"writeErrors":[{"index":0,"code":11000,"codeName":"DuplicateKey","errmsg":"E11000 duplicate key error collection: rec.plain index: _id_ dup key: { _id: \"w:2\" }","keyPattern":{"_id":1},"keyValue":{"_id":"w:2"}}],"ok":1}`,
			want:  store.ErrConflict,
		},
		{
			name:  "a key that is taken, of a server whose text names no index",
			reply: `{"n":0,"writeErrors":[{"index":0,"code":11000,"errmsg":"E11000 duplicate key error collection: rec.plain dup key: { _id: \" index: u\" }","keyPattern":{"_id":1}}],"ok":1}`,
			want:  store.ErrConflict,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"listCollections": denied, "listIndexes": denied, "insert": recorded(t, c.reply)})})
			err := f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1))
			wantSentinel(t, "Append()", err, c.want)
			documenttest.Says(t, "Append()", err, c.want, c.says)
			if got, want := errors.Is(err, store.ErrNotStored), errors.Is(c.want, store.ErrRefused); got != want {
				t.Errorf("Append() = %v: surely not stored: %v, want %v", err, got, want)
			}
		})
	}
}

func TestAnAppendToACollectionThatWasRefusedBeforeIsNotSent(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"listCollections": cursorOf(collectionEntry("view", bson.D{}))})})
	wantErr(t, "Append()", f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1)), store.ErrNotStored)
}
