package mongowire_test

import (
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/internal/mongowire"
)

// asked is what comes of a question to a server that answers by some bytes.
func asked(answer string) (bson.Raw, error) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		_, _ = there.Read(make([]byte, 1024))
		_, _ = there.Write([]byte(answer))
		_ = there.Close()
	}()
	return mongowire.Ask(here, bson.D{{Key: "hello", Value: 1}})
}

// message has a length, the code of OP_MSG, no flags, and the rest.
func message(rest string) string {
	return string(rune(20+len(rest))) + "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00" + "\x00\x00\x00\x00" + rest
}

func TestWhatIsNoReplyIsAnError(t *testing.T) {
	t.Parallel()
	const empty = "\x05\x00\x00\x00\x00"
	for _, checksum := range []string{"", "\x01\x02\x03\x04"} {
		if raw, err := asked(message("\x00" + empty + checksum)); err != nil || string(raw) != empty {
			t.Errorf("Ask() = %v, %v, want the document", raw, err)
		}
	}
	for name, answer := range map[string]string{
		"HTTP":                  "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
		"a huge length":         "\xff\xff\xff\x7f" + message("")[4:],
		"a small length":        "\x01" + message("")[1:],
		"an end":                "",
		"half a head":           "\x20\x00\x00",
		"half a body":           "\x20" + message("")[1:],
		"another code":          strings.Replace(message("\x00"+empty), "\xdd", "\xdc", 1),
		"no section":            message(""),
		"no document":           message("\x00"),
		"half a document":       message("\x00" + empty[:3]),
		"a document of garbage": message("\x00\x0c\x00\x00\x00garbage\x00"),
		"a sequence":            message("\x01" + empty),
	} {
		if raw, err := asked(answer); err == nil {
			t.Errorf("%s: Ask() = %v, want an error", name, raw)
		}
	}
}

func TestAServerUnderstandsWhatIsAsked(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	go func() {
		_ = mongowire.Serve(there, func(command bson.Raw) bson.D { return bson.D{{Key: "asked", Value: command}} })
		_ = there.Close()
	}()
	for range 2 {
		raw, err := mongowire.Ask(here, bson.D{{Key: "hello", Value: int32(1)}})
		if n, _ := raw.Lookup("asked", "hello").AsInt64OK(); err != nil || n != 1 {
			t.Errorf("Ask() = %v, %v, want the command", raw, err)
		}
	}
	_ = here.Close()
}
