package redispeer

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// StartSentinel starts a sentinel, on its own, that knows a primary by a name. It makes one of the primary's
// replicas the primary when it is told to (SENTINEL FAILOVER), or 2 s after the primary was seen last. Its file has
// the lines, too.
func StartSentinel(t testing.TB, name string, primary *Server, lines ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	k := peer.Kind{Name: "redis", Title: "Redis Sentinel", Program: func(own int, data string) (peer.Program, error) {
		path, err := peer.Find("redis-server", "/usr/bin")
		if err != nil {
			return peer.Program{}, err
		}
		file := filepath.Join(data, "sentinel.conf")
		// A sentinel writes what it learns into its file, and refuses to start without one.
		text := fmt.Sprintf("sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 2000\nsentinel failover-timeout %s 5000\n", name, host, port, name, name)
		text += strings.Join(append(lines, ""), "\n")
		return peer.Program{
			Prepare: [][]string{{"sh", "-c", "printf %s \"$1\" >\"$0\"", file, text}},
			Serve:   []string{path, file, "--sentinel", "--port", strconv.Itoa(own), "--bind", "127.0.0.1", "--dir", data},
			Ready:   "+monitor master",
		}, nil
	}}
	return &Server{k.Start(t)}
}
