//go:build unix

package mongopeer

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/internal/mongowire"
)

// standInEnv makes the test binary stand in for mongod and mongos: it takes their flags, answers
// what starting them asks, and writes down what it was started with and asked. It stores nothing.
const standInEnv = "MONGOPEER_STANDIN"

// standIn runs until it is killed.
func standIn(args []string) error {
	flags := flag.NewFlagSet("standin", flag.ContinueOnError)
	port := flags.String("port", "", "")
	dir := flags.String("dbpath", "", "")
	for _, name := range []string{"replSet", "bind_ip", "oplogSize", "wiredTigerCacheSizeGB", "setParameter", "keyFile", "configdb"} {
		flags.String(name, "", "")
	}
	for _, name := range []string{"nounixsocket", "shardsvr", "configsvr"} {
		flags.Bool(name, false, "")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &standInServer{addr: "127.0.0.1:" + *port, dir: *dir}
	s.note("started", strings.Join(args, " "))
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			_ = mongowire.Serve(conn, s.answer)
			_ = conn.Close()
		}()
	}
}

type standInServer struct {
	addr, dir string
	mu        sync.Mutex
}

// note adds a line to a file of the server's data, of which a router has none.
func (s *standInServer) note(name, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(f, line)
		_ = f.Close()
	}
}

// answer is ok to everything. A server is primary once it was told to initiate a set.
func (s *standInServer) answer(command bson.Raw) bson.D {
	ok := bson.D{{Key: "ok", Value: 1.0}}
	switch name := command.Index(0).Key(); name {
	case "hello", "isMaster", "ismaster":
		_, err := os.Stat(filepath.Join(s.dir, "replSetInitiate"))
		return append(ok,
			bson.E{Key: "isWritablePrimary", Value: err == nil},
			bson.E{Key: "ismaster", Value: err == nil},
			bson.E{Key: "secondary", Value: err != nil},
			bson.E{Key: "helloOk", Value: true},
			bson.E{Key: "maxWireVersion", Value: int32(21)},
			bson.E{Key: "maxBsonObjectSize", Value: int32(16 << 20)},
			bson.E{Key: "maxMessageSizeBytes", Value: int32(48_000_000)},
			bson.E{Key: "maxWriteBatchSize", Value: int32(100_000)})
	case "endSessions":
	default:
		text, _ := bson.MarshalExtJSON(command, false, false)
		s.note(name, string(text))
	}
	return ok
}
