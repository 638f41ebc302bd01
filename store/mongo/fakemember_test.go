package mongo

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// answerTo is the reply of a member to a command.
func (m *fakeMember) answerTo(name string, command bson.Raw) bson.D {
	db, _ := command.Lookup("$db").StringValueOK()
	collection, _ := command.Index(0).Value().StringValueOK()
	ns := db + "." + collection
	switch name {
	case "hello", "isMaster", "ismaster":
		return m.helloTo(command)
	case "ping", "endSessions", "killCursors", "dropDatabase":
		return bson.D{{Key: "ok", Value: 1.0}}
	case "find":
		return m.read(command, func(docs documents) bson.D {
			limit, _ := command.Lookup("limit").AsInt64OK()
			filter, _ := command.Lookup("filter").DocumentOK()
			order, _ := command.Lookup("sort", fieldID).AsInt64OK()
			return rawCursor(ns, docs.find(ns, filter, order < 0, limit))
		})
	case "listCollections":
		return m.read(command, func(docs documents) bson.D {
			filter, _ := command.Lookup("filter").DocumentOK()
			var found []bson.Raw
			for name := range docs {
				if of, collection, _ := strings.Cut(name, "."); of == db {
					entry, _ := bson.Marshal(bson.D{
						{Key: "name", Value: collection},
						{Key: "type", Value: "collection"},
						{Key: "options", Value: bson.D{}},
						{Key: "info", Value: bson.D{{Key: "readOnly", Value: false}}},
						{Key: "idIndex", Value: idIndex},
					})
					if matches(entry, filter) {
						found = append(found, entry)
					}
				}
			}
			return rawCursor(db+".$cmd.listCollections", found)
		})
	case "listIndexes":
		return m.read(command, func(docs documents) bson.D {
			if docs[ns] == nil {
				return commandError(codeNamespaceNotFound, "NamespaceNotFound", "ns does not exist: "+ns)
			}
			index, _ := bson.Marshal(idIndex)
			return rawCursor(ns, []bson.Raw{index})
		})
	case "create":
		return m.write(command, func() bson.D {
			if m.all[ns] != nil {
				return commandError(codeNamespaceExists, "NamespaceExists", "Collection already exists. NS: "+ns)
			}
			m.add(&change{term: m.leads, ns: ns, doc: bson.Raw{}})
			return bson.D{{Key: "ok", Value: 1.0}}
		})
	case "aggregate":
		return m.stream(ns, command)
	case "getMore":
		return m.more(command)
	case "insert":
		return m.write(command, func() bson.D { return m.insert(ns, command) })
	case "update":
		return m.write(command, func() bson.D { return m.upsert(ns, command) })
	case "delete":
		return m.write(command, func() bson.D { return m.remove(ns, command) })
	}
	return commandError(codeCommandNotFound, "CommandNotFound", "no such command: '"+name+"'")
}

var idIndex = bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "name", Value: "_id_"}}

func rawCursor(ns string, docs []bson.Raw) bson.D {
	if docs == nil {
		docs = []bson.Raw{} // An array without elements, not null.
	}
	return bson.D{
		{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: ns}, {Key: "firstBatch", Value: docs}}},
		{Key: "ok", Value: 1.0},
	}
}

// helloTo describes the member. As a real one, it answers a hello that names the topology version
// that the client knows only when that has changed, or its time is over: so a client learns of an
// election at once. It takes longer than other commands: the driver, which leaves as much of its
// time for a reply, gets that of a server which gave up then.
func (m *fakeMember) helloTo(command bson.Raw) bson.D {
	time.Sleep(time.Duration(m.slow.Load()))
	s := m.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := command.Lookup("topologyVersion", "counter").AsInt64OK(); ok {
		wait, _ := command.Lookup("maxAwaitTimeMS").AsInt64OK()
		if s.await(time.Duration(wait)*time.Millisecond, func() bool { return m.version > known }) && s.news > 0 {
			s.await(s.news, func() bool { return false })
		}
	}
	writable := "isWritablePrimary"
	if command.Index(0).Key() != "hello" {
		writable = "ismaster"
	}
	d := bson.D{
		{Key: "topologyVersion", Value: m.topologyVersion()},
		{Key: "hosts", Value: s.addresses()},
		{Key: "setName", Value: "rs0"},
		{Key: "setVersion", Value: int32(1)},
		{Key: writable, Value: m.primary},
		{Key: "secondary", Value: !m.primary},
		{Key: "me", Value: m.addr},
		{Key: "maxBsonObjectSize", Value: int32(16 << 20)},
		{Key: "maxMessageSizeBytes", Value: int32(48_000_000)},
		{Key: "maxWriteBatchSize", Value: int32(100_000)},
		{Key: "localTime", Value: bson.NewDateTimeFromTime(m.now())},
		{Key: "logicalSessionTimeoutMinutes", Value: int32(30)},
		{Key: "minWireVersion", Value: int32(0)},
		{Key: "maxWireVersion", Value: int32(13)},
		{Key: "readOnly", Value: false},
		{Key: "ok", Value: 1.0},
	}
	if asked, _ := command.Lookup("helloOk").BooleanOK(); asked {
		d = append(d, bson.E{Key: "helloOk", Value: true})
	}
	if m.knows != nil {
		d = append(d, bson.E{Key: "primary", Value: m.knows.addr})
	}
	if m.primary {
		d = append(d, bson.E{Key: "electionId", Value: electionID(m.leads)})
	}
	return d
}

func (m *fakeMember) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: bson.ObjectID{1, 2, 3}}, {Key: "counter", Value: m.version}}
}

func electionID(term int) (id bson.ObjectID) {
	copy(id[:], []byte{0x7f, 0xff, 0xff, 0xff})
	binary.BigEndian.PutUint64(id[4:], uint64(term))
	return id
}

// await waits, without the lock, until something holds, and reports whether it does. The lock is
// held before and after. Without a time it waits until the test ends.
func (s *fakeReplicaSet) await(most time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithCancel(context.Background())
	if most > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), most)
	}
	defer cancel()
	for !holds() {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		case <-s.ended:
			cancel()
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return holds()
		}
	}
	return true
}

// read answers with read concern majority from what a majority has, as far as this member knows; or
// else from all that it has. Even a primary does that was replaced and hasn't noticed.
func (m *fakeMember) read(command bson.Raw, result func(documents) bson.D) bson.D {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	if mode, _ := command.Lookup("$readPreference", "mode").StringValueOK(); !m.primary && (mode == "" || mode == "primary") {
		return m.notPrimary(13435, "NotPrimaryNoSecondaryOk", "not primary and secondaryOk=false", false)
	}
	m.set.reads++
	if level, _ := command.Lookup("readConcern", "level").StringValueOK(); level == "majority" {
		return result(m.seen)
	}
	return result(m.all)
}

// write does a write on a primary, and waits for a majority as the write concern demands: after a
// write that changed nothing, too, for the newest one before it.
func (m *fakeMember) write(command bson.Raw, do func() bson.D) bson.D {
	s := m.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.primary || m.down {
		text := "not primary" // Both texts were recorded, also for retryable writes.
		if _, err := command.LookupErr("txnNumber"); err == nil && m.set.answered["10107"]%2 == 1 {
			text = "Not primary so we cannot begin or continue a transaction"
		}
		return m.notPrimary(10107, "NotWritablePrimary", text, true)
	}
	d := do()
	s.replicate(m, true)
	if w, _ := command.Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
		return d
	}
	upTo, term := len(m.log), m.leads
	last := m.log[upTo-1]
	wait, _ := command.Lookup("maxTimeMS").AsInt64OK()
	left := func() bool { return !m.primary || m.leads != term || len(m.log) < upTo || m.log[upTo-1] != last }
	s.waiting++
	s.await(time.Duration(wait)*time.Millisecond, func() bool { return m.committed >= upTo || left() })
	s.waiting--
	switch {
	case !left() && m.committed >= upTo:
		return d
	case left():
		d = append(d, bson.E{Key: "writeConcernError", Value: concernError(11602, "InterruptedDueToReplStateChange", "operation was interrupted")},
			bson.E{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}}) // On a duplicate, too.
		m.count(d, "11602")
	default:
		d = append(d, bson.E{Key: "writeConcernError", Value: concernError(50, "MaxTimeMSExpired", "operation exceeded time limit")})
		m.count(d, "50")
	}
	return d
}

// count notes an unconfirmed write: by its code, and whether it found its key taken.
func (m *fakeMember) count(d bson.D, code string) {
	if slices.ContainsFunc(d, func(e bson.E) bool { return e.Key == "writeErrors" }) {
		code = "11000+" + code
	}
	m.set.answered[code]++
}

func concernError(code int32, name, text string) bson.D {
	return bson.D{
		{Key: "code", Value: code},
		{Key: "codeName", Value: name},
		{Key: "errmsg", Value: text},
		{Key: "errInfo", Value: bson.D{{Key: "writeConcern", Value: bson.D{
			{Key: "w", Value: "majority"}, {Key: "j", Value: true}, {Key: "wtimeout", Value: int32(0)}, {Key: "provenance", Value: "clientSupplied"},
		}}}},
	}
}

func (m *fakeMember) notPrimary(code int32, name, text string, retryable bool) bson.D {
	m.set.answered[fmt.Sprint(code)]++
	d := bson.D{{Key: "topologyVersion", Value: m.topologyVersion()}}
	if retryable {
		d = append(bson.D{{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}}}, d...)
	}
	return append(d, commandError(code, name, text)...)
}

// insert stores one document unless its _id is there.
func (m *fakeMember) insert(ns string, command bson.Raw) bson.D {
	docs, _ := command.Lookup("documents").Array().Values()
	doc := docs[0].Document()
	c := &change{term: m.leads, ns: ns, id: idOf(doc), doc: doc}
	if m.all[ns][c.id] != nil {
		id, _ := doc.Lookup(fieldID).StringValueOK()
		return bson.D{
			{Key: "n", Value: int32(0)},
			{Key: "writeErrors", Value: bson.A{bson.D{
				{Key: "index", Value: int32(0)},
				{Key: "code", Value: int32(codeDuplicate)},
				{Key: "keyPattern", Value: bson.D{{Key: "_id", Value: int32(1)}}},
				{Key: "keyValue", Value: bson.D{{Key: "_id", Value: id}}},
				{Key: "errmsg", Value: fmt.Sprintf("E11000 duplicate key error collection: %s index: _id_ dup key: { _id: %q }", ns, id)},
			}}},
			{Key: "ok", Value: 1.0},
		}
	}
	m.add(c)
	return bson.D{{Key: "n", Value: int32(1)}, {Key: "electionId", Value: electionID(m.leads)}, {Key: "ok", Value: 1.0}}
}

// remove deletes what the filters match.
func (m *fakeMember) remove(ns string, command bson.Raw) bson.D {
	n := 0
	deletes, _ := command.Lookup("deletes").Array().Values()
	for _, one := range deletes {
		for _, doc := range m.all.find(ns, one.Document().Lookup("q").Document(), false, 0) {
			m.add(&change{term: m.leads, ns: ns, id: idOf(doc)})
			n++
		}
	}
	return bson.D{{Key: "n", Value: int32(n)}, {Key: "ok", Value: 1.0}}
}

// upsert stores each document in place of the one with its _id.
func (m *fakeMember) upsert(ns string, command bson.Raw) bson.D {
	updates, _ := command.Lookup("updates").Array().Values()
	for _, one := range updates {
		doc := one.Document().Lookup("u").Document()
		m.add(&change{term: m.leads, ns: ns, id: idOf(doc), doc: doc})
	}
	return bson.D{{Key: "n", Value: int32(len(updates))}, {Key: "ok", Value: 1.0}}
}
