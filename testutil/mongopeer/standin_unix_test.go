//go:build unix

package mongopeer

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// standInEnv makes the test binary stand in for mongod and mongos: it takes their flags, answers
// what starting them asks, and writes down what it was started with and asked. It stores nothing.
const standInEnv = "MONGOPEER_STANDIN"

// takenEnv is a folder: of each set, and of the routers, the first server to write its name there finds
// its port taken. With the value always, each server does.
const takenEnv = "MONGOPEER_TAKEN"

// listen is how a server finds its port.
func listen(addr, name string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	dir := os.Getenv(takenEnv)
	if err != nil || dir == "" {
		return listener, err
	}
	if f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = f.Close()
	} else if dir != "always" {
		return listener, nil
	}
	defer func() { _ = listener.Close() }()
	return net.Listen("tcp", addr)
}

// standIn runs until it is killed.
func standIn(args []string) error {
	flags := flag.NewFlagSet("standin", flag.ContinueOnError)
	port := flags.String("port", "", "")
	dir := flags.String("dbpath", "", "")
	set := flags.String("replSet", "mongos", "")
	for _, name := range []string{"bind_ip", "oplogSize", "wiredTigerCacheSizeGB", "setParameter", "keyFile", "configdb"} {
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
	listener, err := listen(s.addr, *set)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.talk(conn)
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

func (s *standInServer) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		all, err := message(conn)
		if err != nil {
			return
		}
		_, id, _, code, body, _ := wiremessage.ReadHeader(all)
		var command bson.Raw
		if code == wiremessage.OpMsg {
			_, rest, _ := wiremessage.ReadMsgFlags(body)
			_, rest, _ = wiremessage.ReadMsgSectionType(rest)
			doc, _, _ := wiremessage.ReadMsgSectionSingleDocument(rest)
			command = bson.Raw(doc)
		} else { // OP_QUERY: flags, name, skip, return, document
			rest := body[4:]
			command = bson.Raw(rest[strings.IndexByte(string(rest), 0)+9:])
		}
		answer, _ := bson.Marshal(s.answer(command))
		at, out := wiremessage.AppendHeaderStart(nil, 0, id, wiremessage.OpMsg)
		out = wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(out, 0), wiremessage.SingleDocument)
		if code != wiremessage.OpMsg {
			at, out = wiremessage.AppendHeaderStart(nil, 0, id, wiremessage.OpReply)
			out = wiremessage.AppendReplyCursorID(wiremessage.AppendReplyFlags(out, 0), 0)
			out = wiremessage.AppendReplyNumberReturned(wiremessage.AppendReplyStartingFrom(out, 0), 1)
		}
		out = append(out, answer...)
		if _, err := io.Copy(conn, strings.NewReader(string(bsoncore.UpdateLength(out, at, int32(len(out)))))); err != nil {
			return
		}
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
