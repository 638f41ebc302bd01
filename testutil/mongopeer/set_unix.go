//go:build unix

package mongopeer

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// SetOptions of StartSet.
type SetOptions struct {
	// Name of the set. Default: rs0.
	Name string
	// Members is how many there are. Default: 3.
	Members int
	// Auth starts the members with a key file, and makes a user of the role root: see Set.URI.
	Auth bool

	role string // configsvr or shardsvr
}

// Set is a replica set of real servers, with an election time-out of 2 s. Its methods must not be
// called at once.
type Set struct {
	o       SetOptions
	keyFile string
	fail    func(format string, args ...any)

	mu      sync.Mutex
	members []*member
}

// member is one server of a set.
type member struct {
	process
	bridge *bridge
	port   int  // guarded by Set.mu
	cut    bool // reaches no other, guarded by Set.mu
}

// Root is the user that a set with Auth has, and Password that of all users.
const (
	Root     = "root"
	Password = "not-a-secret"
)

// StartSet starts a replica set of the mongod that the environment variable MONGOD names, which
// ends with the test. It skips the test if there is none, or fails it if REQUIRE_STORES contains
// "mongod".
func StartSet(t testing.TB, o SetOptions) *Set {
	t.Helper()
	s, err := newSet(need(t, "MONGOD"), t.TempDir(), o)
	t.Cleanup(func() { s.end(t) })
	if err != nil {
		t.Fatalf("start a replica set: %v", err)
	}
	s.fail = t.Fatalf
	return s
}

// newSet starts a set. What was started is in the result even if it fails.
func newSet(mongod, dir string, o SetOptions) (*Set, error) {
	if o.Name == "" {
		o.Name = "rs0"
	}
	if o.Members == 0 {
		o.Members = 3
	}
	s := &Set{o: o, fail: func(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }}
	if o.Auth {
		// 6 to 1024 characters of base64, and no rights for group and world.
		key := make([]byte, 96)
		_, _ = rand.Read(key)
		s.keyFile = filepath.Join(dir, o.Name+".key")
		if err := os.WriteFile(s.keyFile, []byte(base64.StdEncoding.EncodeToString(key)), 0o600); err != nil {
			return s, err
		}
	}
	for i := range o.Members {
		m := &member{}
		m.program, m.data = mongod, filepath.Join(dir, fmt.Sprintf("%s-%d", o.Name, i))
		var err error
		if m.bridge, err = newBridge(func() string { return s.target(m) }, func(from int) bool { return s.allowed(from, m) }); err != nil {
			return s, err
		}
		s.mu.Lock()
		s.members = append(s.members, m)
		s.mu.Unlock()
		if err := os.Mkdir(m.data, 0o700); err != nil {
			return s, err
		}
	}
	return s, s.initiate()
}

// target is where a member listens.
func (s *Set) target(m *member) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return peer.Local(m.port)
}

// begin starts a member, for the first time or again, and waits until it answers.
func (s *Set) begin(ctx context.Context, m *member) error {
	return begin(ctx, &m.process, func(port int) error {
		s.mu.Lock()
		m.port = port
		s.mu.Unlock()
		m.flags = mongodFlags(s.o, port, m.data, s.keyFile)
		return m.start()
	}, m.bridge.addr)
}

// initiate makes the servers a set, and waits for its primary.
func (s *Set) initiate() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := s.beginAll(ctx); err != nil {
		return err
	}
	var hosts bson.A
	for i, m := range s.members {
		hosts = append(hosts, bson.D{{Key: "_id", Value: i}, {Key: "host", Value: m.bridge.addr()}})
	}
	config := bson.D{
		{Key: "_id", Value: s.o.Name},
		{Key: "version", Value: 1},
		{Key: "members", Value: hosts},
		{Key: "settings", Value: bson.D{{Key: "electionTimeoutMillis", Value: 2000}, {Key: "heartbeatIntervalMillis", Value: 500}}},
	}
	if s.o.role == "configsvr" {
		config = append(config, bson.E{Key: "configsvr", Value: true})
	}
	if _, err := ask(ctx, s.address(0), bson.D{{Key: "replSetInitiate", Value: config}}); err != nil {
		return fmt.Errorf("replSetInitiate: %w", err)
	}
	p, err := s.awaitPrimary(ctx)
	if err != nil || !s.o.Auth {
		return err
	}
	// The first user may be made from this machine without authentication.
	_, err = ask(ctx, s.address(p), bson.D{{Key: "createUser", Value: Root}, {Key: "pwd", Value: Password}, {Key: "roles", Value: bson.A{"root"}}})
	if err != nil {
		return fmt.Errorf("createUser: %w", err)
	}
	return nil
}

// beginAll starts all members at once.
func (s *Set) beginAll(ctx context.Context) error {
	errs := make([]error, len(s.members))
	var all sync.WaitGroup
	for i, m := range s.members {
		all.Go(func() { errs[i] = s.begin(ctx, m) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// address is the URI of one member alone.
func (s *Set) address(i int) string {
	return "mongodb://" + s.members[i].bridge.addr() + "/?directConnection=true"
}

// URI is that of the set. With Auth, user is one in the database admin, such as Root.
func (s *Set) URI(user string) string {
	var hosts []string
	for _, m := range s.members {
		hosts = append(hosts, m.bridge.addr())
	}
	uri := strings.Join(hosts, ",") + "/?replicaSet=" + s.o.Name
	if user == "" {
		return "mongodb://" + uri
	}
	return "mongodb://" + user + ":" + Password + "@" + uri + "&authSource=admin"
}

// Primary is the index of the primary. It waits up to a minute for one.
func (s *Set) Primary() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	i, err := s.awaitPrimary(ctx)
	if err != nil {
		s.fail("%v", err)
	}
	return i
}

// awaitPrimary returns the member that says that it is primary, and was elected last.
func (s *Set) awaitPrimary(ctx context.Context) (int, error) {
	for {
		found, newest := -1, bson.ObjectID{}
		for i, m := range s.members {
			if m.cmd == nil {
				continue
			}
			reply, err := askWithin(ctx, time.Second, s.address(i), bson.D{{Key: "hello", Value: 1}})
			if err != nil {
				continue
			}
			writable, _ := reply.Lookup("isWritablePrimary").BooleanOK()
			if id, _ := reply.Lookup("electionId").ObjectIDOK(); writable && (found < 0 || string(id[:]) > string(newest[:])) {
				found, newest = i, id
			}
		}
		if found >= 0 {
			return found, nil
		}
		if err := pause(ctx); err != nil {
			return -1, fmt.Errorf("%s has no primary", s.o.Name)
		}
	}
}

// Do runs a command on the database admin of the primary: as Root, with Auth.
func (s *Set) Do(command bson.D) bson.Raw {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	user := ""
	if s.o.Auth {
		user = Root
	}
	reply, err := ask(ctx, s.URI(user), command)
	if err != nil {
		s.fail("%s: %v", command[0].Key, err)
	}
	return reply
}

// StepDown makes the primary a secondary, which another replaces. It isn't elected for 10 s.
func (s *Set) StepDown() {
	s.Do(bson.D{{Key: "replSetStepDown", Value: 10}, {Key: "secondaryCatchUpPeriodSecs", Value: 5}, {Key: "force", Value: true}})
}

// Kill ends a member with SIGKILL, and Restart starts it again with its data and address.
func (s *Set) Kill(i int) { s.members[i].end() }

// Restart starts a member that was killed, and waits until it answers.
func (s *Set) Restart(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := s.begin(ctx, s.members[i]); err != nil {
		s.fail("restart member %d of %s: %v", i, s.o.Name, err)
	}
}

// RolledBack are the documents that members have rolled back, of all collections: mongod saves them
// in files.
func (s *Set) RolledBack() (docs []bson.Raw) {
	for _, m := range s.members {
		files, err := rollbackFiles(m.data)
		for _, name := range files {
			f, openErr := os.Open(name)
			if openErr != nil {
				err = openErr
				break
			}
			for doc, readErr := bson.ReadDocument(f); ; doc, readErr = bson.ReadDocument(f) {
				if readErr != nil { // At the end, or in the middle of one that is being written.
					break
				}
				docs = append(docs, doc)
			}
			_ = f.Close()
		}
		if err != nil {
			s.fail("read what was rolled back: %v", err)
		}
	}
	return docs
}

// end ends all members. The log of each is shown if the test has failed.
func (s *Set) end(t testing.TB) {
	for i, m := range s.members {
		m.bridge.close()
		m.end()
		if text := m.log.String(); t != nil && t.Failed() && text != "" {
			t.Logf("log of %s, member %d:\n%s", s.o.Name, i, text)
		}
	}
}
