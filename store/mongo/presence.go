package mongo

import (
	"bytes"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

// attendance is the document of a presence: its fields by the names that they have in JSON.
type attendance struct {
	Key            string `bson:"_id"`
	store.Presence `bson:",inline"`
}

// encodePresence is the document of a presence that passed its Check. What is empty is left out.
func encodePresence(p store.Presence) (bson.Raw, error) {
	var doc bytes.Buffer
	e := bson.NewEncoder(bson.NewDocumentWriter(&doc))
	e.SetRegistry(labelled)
	e.UseJSONStructTags()
	e.OmitEmpty()
	err := e.Encode(attendance{storekit.PresenceKey(p.WorkerType, p.ID), p.Truncated()})
	return doc.Bytes(), err
}

// decodePresence reads a document, or reports false if it is none of a presence that passes its Check.
func decodePresence(raw bson.Raw) (store.Presence, bool) {
	if len(raw) > storekit.MaxPresence {
		return store.Presence{}, false
	}
	var a attendance
	d := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	d.SetRegistry(labelled)
	d.UseJSONStructTags()
	if raw.Validate() != nil || d.Decode(&a) != nil || a.Presence.Check() != nil || a.Key != storekit.PresenceKey(a.WorkerType, a.ID) {
		return store.Presence{}, false
	}
	return a.Truncated(), true
}

// labelled is the driver's registry, with labels as a list.
var labelled = func() *bson.Registry {
	labels, list := reflect.TypeFor[map[string]string](), reflect.TypeFor[[]document.Label]()
	r := bson.NewRegistry()
	r.RegisterTypeEncoder(labels, bson.ValueEncoderFunc(func(c bson.EncodeContext, w bson.ValueWriter, v reflect.Value) error {
		e, err := c.LookupEncoder(list)
		if err != nil {
			return err
		}
		return e.EncodeValue(c, w, reflect.ValueOf(document.List(v.Interface().(map[string]string))))
	}))
	r.RegisterTypeDecoder(labels, bson.ValueDecoderFunc(func(c bson.DecodeContext, from bson.ValueReader, v reflect.Value) error {
		d, err := c.LookupDecoder(list)
		if err != nil {
			return err
		}
		all := reflect.New(list).Elem()
		if err := d.DecodeValue(c, from, all); err != nil {
			return err
		}
		v.Set(reflect.ValueOf(document.Map(all.Interface().([]document.Label))))
		return nil
	}))
	return r
}()
