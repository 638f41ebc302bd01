package mongo

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// fakeStream is a change stream: a cursor over what a majority has, in the order of the log.
type fakeStream struct {
	ns   string
	kept []string // kinds whose inserts the client doesn't want
	at   int      // how much of the log it has passed
}

// stream begins a change stream: at its token, or else now.
func (m *fakeMember) stream(ns string, command bson.Raw) bson.D {
	s := m.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.primary {
		return m.notPrimary(13435, "NotPrimaryNoSecondaryOk", "not primary and secondaryOk=false", false)
	}
	begin, ok := command.Lookup("pipeline", "0", "$changeStream").DocumentOK()
	level, _ := command.Lookup("readConcern", "level").StringValueOK()
	if !ok || level != "majority" {
		return commandError(codeBadValue, "BadValue", "the fake set knows change streams of what a majority has, and no other pipelines")
	}
	x := &fakeStream{ns: ns, at: m.committed}
	if token, ok := begin.Lookup("resumeAfter", "_data").StringValueOK(); ok {
		x.at, _ = strconv.Atoi(token)
	}
	kinds, _ := command.Lookup("pipeline", "1", "$match", "$or", "0", "fullDocument.kind", "$nin").Array().Values()
	for _, k := range kinds {
		x.kept = append(x.kept, k.StringValue())
	}
	id := int64(len(s.streams) + 1)
	s.streams[id] = x
	return x.batch(id, "firstBatch", nil)
}

// more waits for news of a change stream, for as long as the client says.
func (m *fakeMember) more(command bson.Raw) bson.D {
	s := m.set
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := command.Index(0).Value().AsInt64OK()
	x := s.streams[id]
	if x == nil {
		return commandError(43, "CursorNotFound", fmt.Sprintf("cursor id %d not found", id))
	}
	wait, _ := command.Lookup("maxTimeMS").AsInt64OK()
	term := m.leads
	left := func() bool { return !m.primary || m.leads != term }
	var events []bson.D
	s.await(time.Duration(max(wait, 1))*time.Millisecond, func() bool {
		for ; x.at < m.committed; x.at++ {
			if c := m.log[x.at]; x.wants(c) {
				events = append(events, x.event(c))
			}
		}
		return len(events) > 0 || left()
	})
	if left() && len(events) == 0 {
		d := m.notPrimary(11602, "InterruptedDueToReplStateChange", "operation was interrupted", false)
		return append(d, bson.E{Key: "errorLabels", Value: bson.A{"ResumableChangeStreamError"}})
	}
	return x.batch(id, "nextBatch", events)
}

// wants reports that the client is to hear of a change.
func (x *fakeStream) wants(c *change) bool {
	if c.ns != x.ns || c.id == "" || c.doc == nil {
		return false
	}
	kind, _ := c.doc.Lookup("kind").StringValueOK()
	return !slices.Contains(x.kept, kind)
}

func (x *fakeStream) event(c *change) bson.D {
	return bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: strconv.Itoa(x.at + 1)}}},
		{Key: "operationType", Value: "insert"},
		{Key: "documentKey", Value: bson.D{{Key: "_id", Value: c.doc.Lookup(fieldID)}}},
	}
}

func (x *fakeStream) batch(id int64, name string, events []bson.D) bson.D {
	if events == nil {
		events = []bson.D{}
	}
	return bson.D{
		{Key: "cursor", Value: bson.D{
			{Key: "id", Value: id},
			{Key: "ns", Value: x.ns},
			{Key: name, Value: events},
			{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: strconv.Itoa(x.at)}}},
		}},
		{Key: "ok", Value: 1.0},
	}
}
