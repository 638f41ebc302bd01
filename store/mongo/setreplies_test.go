package mongo

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// passing are what differs from reply to reply.
var passing = []string{"ok", "electionId", "opTime", "topologyVersion", "localTime", "connectionId", "lastWrite", "hosts", "me", "primary", "maxWireVersion"}

// stable is a reply without what differs from one to the next, in an order of its own.
func stable(t *testing.T, d bson.D) map[string]string {
	t.Helper()
	raw, err := bson.Marshal(d)
	must(t, "Marshal()", err)
	var again bson.D
	must(t, "Unmarshal()", bson.Unmarshal(raw, &again))
	got := map[string]string{}
	for _, e := range again {
		if !slices.Contains(passing, e.Key) {
			got[e.Key] = sorted(e.Value)
		}
	}
	return got
}

// sorted is a value as text, with the fields of documents in order.
func sorted(v any) string {
	switch v := v.(type) {
	case bson.D:
		var fields []string
		for _, e := range v {
			fields = append(fields, e.Key+": "+sorted(e.Value))
		}
		slices.Sort(fields)
		return fmt.Sprint(fields)
	case bson.A:
		var all []string
		for _, e := range v {
			all = append(all, sorted(e))
		}
		return fmt.Sprint(all)
	}
	return fmt.Sprint(v)
}

// The fake set is worth as much as its replies are MongoDB's.
func TestTheFakeSetAnswersAsRecorded(t *testing.T) {
	// ask sends the recorded command to a member, and compares the replies.
	ask := func(t *testing.T, m *fakeMember, what string) {
		t.Helper()
		r := recording(t, "set", what)
		raw, err := bson.Marshal(r.Command)
		must(t, "Marshal()", err)
		if got, want := stable(t, m.answer(raw)), stable(t, r.Reply); !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v, want %v as recorded", what, got, want)
		}
	}
	stage := func(t *testing.T, name string, play func(t *testing.T, s *fakeReplicaSet, p *fakeMember)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveReplicaSet(t, inBubble)
				play(t, s, s.primary())
			})
		})
	}
	stage(t, "healthy", func(t *testing.T, s *fakeReplicaSet, p *fakeMember) {
		ask(t, p, "listCollections")
		ask(t, p, "create")
		ask(t, p, "listIndexes")
		ask(t, p, "find")
		ask(t, p, "insert")
		ask(t, p, "duplicate")
		ask(t, p, "hello of the primary")
		ask(t, s.other(p), "hello of a secondary")
		ask(t, s.other(p), "find on a secondary")
	})
	stage(t, "stepped down", func(t *testing.T, s *fakeReplicaSet, p *fakeMember) {
		s.stepDown(p)
		ask(t, p, "no primary any more")
		ask(t, p, "no primary any more, with a retryable write")
		ask(t, s.other(p), "hello of a secondary without a primary")
	})
	stage(t, "cut off", func(t *testing.T, s *fakeReplicaSet, p *fakeMember) {
		ask(t, p, "create")
		s.split(p)
		ask(t, p, "not confirmed: 50")
		ask(t, p, "duplicate while the majority is not reached: 50")
	})
	stage(t, "cut off, then stepped down", func(t *testing.T, s *fakeReplicaSet, p *fakeMember) {
		ask(t, p, "create")
		s.split(p)
		go ask(t, p, "not confirmed: 11602")
		synctest.Wait()
		s.stepDown(p)
		synctest.Wait()
	})
	stage(t, "cut off with a duplicate, then stepped down", func(t *testing.T, s *fakeReplicaSet, p *fakeMember) {
		ask(t, p, "create")
		s.split(p)
		ask(t, p, "not confirmed: 50")
		go ask(t, p, "duplicate while the primary steps down: 11602")
		synctest.Wait()
		s.stepDown(p)
		synctest.Wait()
	})
}
