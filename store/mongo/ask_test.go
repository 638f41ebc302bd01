package mongo

import (
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

func TestARepliesFaultIsAnError(t *testing.T) {
	t.Parallel()
	document := func(d bson.D) []byte {
		raw, err := bson.Marshal(d)
		must(t, "Marshal()", err)
		return raw
	}
	body := func(kind wiremessage.SectionType, rest []byte) []byte {
		return append(wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(nil, 0), kind), rest...)
	}
	good := document(bson.D{{Key: "ok", Value: 1.0}})
	if raw, err := reply(body(wiremessage.SingleDocument, good)); err != nil || string(raw) != string(good) {
		t.Errorf("reply() = %v, %v, want the document", raw, err)
	}
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"nothing":               {nil, "broken"},
		"no section":            {body(wiremessage.SingleDocument, nil)[:4], "broken"},
		"no document":           {body(wiremessage.SingleDocument, nil), "broken"},
		"half a document":       {body(wiremessage.SingleDocument, good[:len(good)-3]), "broken"},
		"a document of garbage": {body(wiremessage.SingleDocument, []byte("\x0c\x00\x00\x00garbage\x00")), "broken"},
		"a sequence":            {body(wiremessage.DocumentSequence, good), "broken"},
		"a refusal":             {body(wiremessage.SingleDocument, document(bson.D{{Key: "ok", Value: 0}, {Key: "errmsg", Value: "not \xff today"}})), "hello was refused: not \ufffd today"},
		"no ok":                 {body(wiremessage.SingleDocument, document(bson.D{{Key: "me", Value: "a:1"}})), "refused"},
	} {
		if raw, err := reply(c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: reply() = %v, %v, want an error that says %q", name, raw, err, c.want)
		}
	}
}

func TestWhatIsNotMongoDBIsAnError(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"HTTP":           "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
		"a huge length":  "\xff\xff\xff\x7f\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",
		"a small length": "\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",
		"an end":         "",
		"half a head":    "\x20\x00\x00",
		"half a body":    "\x20\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x00",
	} {
		here, there := net.Pipe()
		go func() {
			_, _ = there.Read(make([]byte, 1024))
			_, _ = there.Write([]byte(answer))
			_ = there.Close()
		}()
		if raw, err := exchange(here, bson.D{{Key: "hello", Value: 1}}); err == nil {
			t.Errorf("%s: exchange() = %v, want an error", name, raw)
		}
		_ = here.Close()
	}
}
