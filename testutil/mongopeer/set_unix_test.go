//go:build unix

package mongopeer

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

// setParentEnv makes the test binary start a set in a folder, print its addresses, and wait to be
// killed.
const setParentEnv = "MONGOPEER_SET_IN"

// play plays the part that the environment gives to this process, if any.
func play() {
	var err error
	switch dir := os.Getenv(setParentEnv); {
	case dir != "":
		_ = os.Unsetenv(setParentEnv)
		err = setParent(dir)
	case os.Getenv(standInEnv) != "" && len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test."):
		err = standIn(os.Args[1:])
	default:
		return
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

// setParent returns only if it fails.
func setParent(dir string) error {
	s, err := newSet(os.Args[0], dir, SetOptions{})
	if err != nil {
		return err
	}
	for _, m := range s.members {
		fmt.Print("127.0.0.1:", m.port, " ")
	}
	fmt.Println()
	select {}
}

// withStandIn makes the test binary the mongod and mongos of a test.
func withStandIn(t *testing.T) {
	t.Helper()
	t.Setenv(standInEnv, "1")
	t.Setenv("MONGOD", os.Args[0])
	t.Setenv("MONGOS", os.Args[0])
}

// noted is what a stand-in wrote down.
func noted(t *testing.T, m *member, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.data, name))
	if err != nil {
		t.Errorf("member at %d noted no %s: %v", m.port, name, err)
	}
	return string(text)
}

func wantParts(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s = %s, want %s in it", what, text, part)
		}
	}
}

func TestASetIsStartedAsMongodWantsIt(t *testing.T) {
	withStandIn(t)
	s := StartSet(t, SetOptions{Auth: true})
	for _, m := range s.members {
		wantParts(t, "flags", noted(t, m, "started"), "--replSet rs0 ", "--port "+strconv.Itoa(m.port)+" ", "--bind_ip 127.0.0.1 ", "--dbpath "+m.data+" ", "--keyFile ", "enableTestCommands=1")
		i := len(m.flags) - 1
		info, err := os.Stat(m.flags[i])
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() < 6 || info.Size() > 1024 {
			t.Errorf("key file %s: %v, %v, want 6 to 1024 characters for the owner alone", m.flags[i], info, err)
		}
	}
	first := s.members[0]
	wantParts(t, "configuration", noted(t, first, "replSetInitiate"), `"_id":"rs0"`, `"electionTimeoutMillis":2000`,
		first.bridge.addr(), s.members[1].bridge.addr(), s.members[2].bridge.addr())
	wantParts(t, "user", noted(t, first, "createUser"), `"createUser":"root"`, `"roles":["root"]`)
	if p := s.Primary(); p != 0 {
		t.Errorf("Primary() = %d, want 0", p)
	}
	s.Kill(0)
	if conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(first.port)); err == nil {
		_ = conn.Close()
		t.Error("a killed member answers")
	}
	s.Restart(0)
	if p := s.Primary(); p != 0 {
		t.Errorf("Primary() after Restart() = %d, want 0", p)
	}
	if got := strings.Count(noted(t, first, "started"), "\n"); got != 2 {
		t.Errorf("the first member was started %d times, want 2", got)
	}
}

func TestAClusterIsStartedAsMongosWantsIt(t *testing.T) {
	withStandIn(t)
	c := StartCluster(t)
	wantParts(t, "flags of mongos", strings.Join(c.router.flags, " "), "--configdb config/"+c.sets[0].members[0].bridge.addr())
	wantParts(t, "flags of the config server", noted(t, c.sets[0].members[0], "started"), "--configsvr")
	wantParts(t, "its configuration", noted(t, c.sets[0].members[0], "replSetInitiate"), `"configsvr":true`)
	wantParts(t, "flags of a shard", noted(t, c.sets[1].members[0], "started"), "--replSet shard0 ", "--shardsvr")
}

func TestAServerThatDoesNotStartIsReportedWithItsLog(t *testing.T) {
	t.Setenv(standInEnv, "1")
	s, err := newSet(os.Args[0], t.TempDir(), SetOptions{Members: 1, role: "no-such-flag"})
	t.Cleanup(func() { s.end(nil) })
	if err == nil {
		t.Fatal("a set of servers that don't start = nil, want an error")
	}
	wantParts(t, "error", err.Error(), "has ended", "no-such-flag")
}

// hello is the first message of a connection, from a server on a port or, with 0, from a client.
func hello(t *testing.T, from int) []byte {
	t.Helper()
	d := bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}
	if from != 0 {
		d = append(d, bson.E{Key: "hostInfo", Value: fmt.Sprint("some.host:", from)})
	}
	doc, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	n := 16 + 4 + 1 + len(doc)
	head := []byte{byte(n), byte(n >> 8), 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 0x07, 0, 0, 0, 0, 0, 0, 0}
	return append(head, doc...)
}

func TestACutMemberIsReachedByClientsAlone(t *testing.T) {
	withStandIn(t)
	s := StartSet(t, SetOptions{})
	// dial connects to a member, and reports whether it answers.
	dial := func(to, from int) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", s.members[to].bridge.addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write(hello(t, from))
		return conn
	}
	answers := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err := message(conn)
		return err == nil
	}
	ports := make([]int, 3)
	for i, m := range s.members {
		ports[i] = m.port
	}
	old := dial(1, ports[0])
	if !answers(old) {
		t.Fatal("a member doesn't reach another of a set that is whole")
	}
	s.Cut(0)
	if _, _ = old.Write(hello(t, ports[0])); answers(old) {
		t.Error("a connection between members outlives the cut")
	}
	for _, c := range []struct {
		what     string
		to, from int
		want     bool
	}{
		{"a client to the cut member", 0, 0, true},
		{"a client to another", 1, 0, true},
		{"the cut member to another", 1, ports[0], false},
		{"another to the cut member", 0, ports[2], false},
		{"the cut member to itself", 0, ports[0], true},
		{"another to a third", 2, ports[1], true},
		{"a router to the cut member", 0, 1, true},
	} {
		if got := answers(dial(c.to, c.from)); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	s.Heal()
	if !answers(dial(1, ports[0])) {
		t.Error("members don't reach each other after Heal()")
	}
}

func TestRealServersEndWithTheirTestBinary(t *testing.T) {
	dir := t.TempDir()
	line := peertest.FirstLineOfKilled(t, standInEnv+"=1", setParentEnv+"="+dir)
	addrs := strings.Fields(line)
	if len(addrs) != 3 {
		t.Fatalf("first line = %q, want three addresses", line)
	}
	ctx := suites.Deadline(t)
	for _, addr := range addrs {
		for conn, err := net.Dial("tcp", addr); err == nil; conn, err = net.Dial("tcp", addr) {
			_ = conn.Close()
			if pause(ctx) != nil {
				t.Fatalf("%s answers long after its test binary was killed", addr)
			}
		}
	}
	for left := []string{""}; len(left) > 0; {
		var err error
		if left, err = filepath.Glob(filepath.Join(dir, "rs0-*")); err != nil || pause(ctx) != nil {
			t.Fatalf("30 s after its test binary was killed, its data is left: %s, %v", left, err)
		}
	}
}

// ended notes how a test was ended.
type ended struct {
	testing.TB
	failed bool
	text   string
}

func (e *ended) Helper() {}

func (e *ended) Skipf(format string, args ...any) {
	e.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (e *ended) Fatalf(format string, args ...any) {
	e.failed = true
	e.Skipf(format, args...)
}

func TestRealServersAreSkippedVisiblyUnlessRequired(t *testing.T) {
	t.Setenv("MONGOD", "")
	for _, required := range []string{"", "mongod"} {
		t.Setenv("REQUIRE_STORES", required)
		f := &ended{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			StartSet(f, SetOptions{})
		}()
		<-done
		if f.failed != (required != "") || !strings.Contains(f.text, "MONGOD names no program") {
			t.Errorf("StartSet() without MONGOD, required %q: failed %v, %q", required, f.failed, f.text)
		}
	}
}
