package mongo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// recordedReply is a command, and the reply that MongoDB 5.0.7 gave: in testdata/replies, without
// sessions and cluster times.
type recordedReply struct {
	What string
	// Means is what the reply is to a ledger: conflict, refused, denied, or unknown; nothing if it
	// is no error.
	Means   string
	DB      string `bson:"db"`
	Command bson.D
	Reply   bson.D
}

var sentinels = map[string]error{
	"conflict": store.ErrConflict,
	"refused":  store.ErrRefused,
	"denied":   store.ErrDenied,
	"unknown":  nil,
}

// recordings reads a file of them.
func recordings(t *testing.T, name string) (all []recordedReply) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "replies", name+".json"))
	must(t, "ReadFile()", err)
	var each []json.RawMessage
	must(t, "Unmarshal()", json.Unmarshal(text, &each))
	for _, raw := range each {
		var r recordedReply
		must(t, "UnmarshalExtJSON()", bson.UnmarshalExtJSON(raw, false, &r))
		all = append(all, r)
	}
	return all
}

// recording is the one of a name in a file.
func recording(t *testing.T, file, what string) recordedReply {
	t.Helper()
	for _, r := range recordings(t, file) {
		if r.What == what {
			return r
		}
	}
	t.Fatalf("testdata/replies/%s.json has no recording %q", file, what)
	return recordedReply{}
}

func TestRecordedRepliesMeanWhatTheyShould(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"set", "mongos", "auth"} {
		for _, r := range recordings(t, file) {
			failed := r.Reply[0].Key == "ok" && r.Reply[0].Value == int32(0)
			for _, e := range r.Reply {
				failed = failed || e.Key == "writeErrors" || e.Key == "writeConcernError" || e.Key == "code"
			}
			if failed != (r.Means != "") {
				t.Errorf("%s: %q: fails: %v, means %q", file, r.What, failed, r.Means)
			}
			want, known := sentinels[r.Means]
			if !failed || !known {
				continue
			}
			t.Run(file+"/"+r.What, func(t *testing.T) {
				t.Parallel()
				name := r.Command[0].Key
				f := serve(t, &fakeServer{reply: answers(map[string]bson.D{name: r.Reply})})
				l := f.open(Options{})
				ctx := within(t, patience)
				if want == nil {
					// The driver repeats some until the context ends, which has no sentinel either.
					ctx = within(t, time.Second)
				}
				switch name {
				case "insert":
					wantSentinel(t, "Append()", l.Append(ctx, storetest.Grant("job", 7)), want)
				case "find":
					_, err := l.Get(ctx, "job", 7)
					wantSentinel(t, "Get()", err, want)
				default:
					err := l.to().db.RunCommand(ctx, bson.D{{Key: name, Value: "x"}}).Err()
					if err == nil {
						t.Fatalf("%s = nil, want an error", name)
					}
					wantSentinel(t, name, classify(ctx, err), want)
				}
			})
		}
	}
}
