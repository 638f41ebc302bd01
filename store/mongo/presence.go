package mongo

import (
	"bytes"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
)

// attended is the document of a presence. Its fields have the names that they have in JSON. Labels are a list
// beside them, since not every server takes all texts as names of fields.
type attended struct {
	Key      string         `json:"_id"`
	Presence store.Presence `json:"presence"`
	Labels   []label        `json:"labels"`
}

type label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// presenceKey is the _id of a presence.
func presenceKey(workerType, id string) string { return workerType + ":" + id }

// encodePresence is the document of a presence that passed its Check. What is empty is left out.
func encodePresence(p store.Presence) (bson.Raw, error) {
	d := attended{Key: presenceKey(p.WorkerType, p.ID), Presence: p.Truncated()}
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		d.Labels = append(d.Labels, label{name, p.Labels[name]})
	}
	d.Presence.Labels = nil
	var doc bytes.Buffer
	e := bson.NewEncoder(bson.NewDocumentWriter(&doc))
	e.UseJSONStructTags()
	e.OmitEmpty()
	err := e.Encode(d)
	return doc.Bytes(), err
}

// decodePresence reads a document, and reports whether it is of a presence that passes its Check.
func decodePresence(raw bson.Raw) (store.Presence, bool) {
	var a attended
	d := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	d.UseJSONStructTags()
	if raw.Validate() != nil || d.Decode(&a) != nil {
		return store.Presence{}, false
	}
	p := a.Presence.Truncated()
	p.Labels = nil
	for _, l := range a.Labels {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[l.Name] = l.Value
	}
	return p, a.Key == presenceKey(p.WorkerType, p.ID) && p.Check() == nil
}
