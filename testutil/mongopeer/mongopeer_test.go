package mongopeer

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/testutil/internal/process"
)

// parentEnv makes the test binary start a peer, tell where it is, and wait to be
// killed.
const parentEnv = "MONGOPEER_TEST_PARENT"

func TestMain(m *testing.M) {
	if mode := os.Getenv(parentEnv); mode != "" {
		parent(mode)
	}
	os.Exit(m.Run())
}

func parent(mode string) {
	s, err := shared()
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	if mode == "paused" {
		if err := s.process.Pause(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	fmt.Println(s.Addr(), s.data)
	select {}
}

// dial connects to a server for the time of the test.
func dial(t *testing.T, uri string) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database("mongopeer").Collection(strings.ReplaceAll(t.Name(), "/", "-"))
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestRestartKeepsPortAndData(t *testing.T) {
	s := Start(t)
	uri := s.URI()
	c := dial(t, uri)
	if _, err := c.InsertOne(within(t, time.Minute), bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatalf("insert = %v, want nil", err)
	}
	s.Kill()
	if conn, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
		_ = conn.Close()
		t.Errorf("%s answers after Kill, want it refused", s.Addr())
	}
	s.Restart()
	if got := s.URI(); got != uri {
		t.Errorf("URI() after Restart = %q, want %q", got, uri)
	}
	if n, err := c.CountDocuments(within(t, time.Minute), bson.D{}); err != nil || n != 1 {
		t.Errorf("documents after Restart = %d, %v, want 1", n, err)
	}
}

func TestPausedPeerIsSilentUntilResumed(t *testing.T) {
	s := Start(t)
	c := dial(t, s.URI())
	if err := c.Database().Client().Ping(within(t, time.Minute), nil); err != nil {
		t.Fatalf("ping = %v, want nil", err)
	}
	s.Pause()
	if err := c.Database().Client().Ping(within(t, 300*time.Millisecond), nil); err == nil {
		t.Error("ping of a paused peer = nil, want a timeout")
	}
	s.Resume()
	if err := c.Database().Client().Ping(within(t, time.Minute), nil); err != nil {
		t.Errorf("ping after Resume = %v, want nil", err)
	}
}

func TestSharedPeerIsStartedOnce(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	first := URI(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := URI(t); got != first {
				t.Errorf("URI() = %q, want %q", got, first)
			}
		})
	}
	wg.Wait()
	if err := dial(t, first).Database().Client().Ping(within(t, time.Minute), nil); err != nil {
		t.Errorf("ping = %v, want nil", err)
	}
}

func TestURIPrefersTheEnvironment(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://db.example/")
	if got := URI(t); got != "mongodb://db.example/" {
		t.Errorf("URI() = %q, want that of MONGODB_URI", got)
	}
}

func TestPeerEndsWithItsTestBinary(t *testing.T) {
	for _, mode := range []string{"running", "paused"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "paused" && !process.CanPause {
				t.Skip("this system can't pause a process")
			}
			if _, err := binary(); err != nil {
				unavailable(t, err)
			}
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), parentEnv+"="+mode)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(stdout).ReadString('\n')
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			addr, data, ok := strings.Cut(strings.TrimSpace(line), " ")
			if u, parseErr := url.Parse("mongodb://" + addr); err != nil || !ok || parseErr != nil || u.Port() == "" {
				t.Fatalf("first line = %q, %v, want address and folder", line, err)
			}
			// A real process ends in real time.
			for ctx := within(t, 20*time.Second); ; time.Sleep(10 * time.Millisecond) {
				conn, dialErr := net.DialTimeout("tcp", addr, time.Second)
				if dialErr == nil {
					_ = conn.Close()
				}
				_, statErr := os.Stat(data)
				if dialErr != nil && os.IsNotExist(statErr) {
					return
				}
				if ctx.Err() != nil {
					t.Fatalf("20 s after its test binary was killed: dial %s = %v, stat %s = %v, want both gone", addr, dialErr, data, statErr)
				}
			}
		})
	}
}

func TestAbsentPeerSkipsOrFails(t *testing.T) {
	for _, c := range []struct {
		env     string
		skipped bool
	}{
		{"", true},
		{"cosmos", true},
		{"mongo", false},
		{"cosmos,mongo", false},
	} {
		t.Setenv("REQUIRE_STORES", c.env)
		f := &fakeTB{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			unavailable(f, os.ErrNotExist)
		}()
		<-done
		if f.skipped != c.skipped || f.failed == c.skipped {
			t.Errorf("REQUIRE_STORES=%q: skipped %v, failed %v, want %v and %v", c.env, f.skipped, f.failed, c.skipped, !c.skipped)
		}
	}
}

// fakeTB notes how a test was ended.
type fakeTB struct {
	testing.TB
	skipped, failed bool
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Skipf(string, ...any) {
	f.skipped = true
	runtime.Goexit()
}

func (f *fakeTB) Fatalf(string, ...any) {
	f.failed = true
	runtime.Goexit()
}
