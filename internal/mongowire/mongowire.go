// Package mongowire speaks as much of MongoDB's wire protocol as is needed to ask one member of a replica set, for which the
// driver has no way, and to play a server in tests.
package mongowire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A message is a header, flags, and sections:
// https://github.com/mongodb/specifications/blob/master/source/message/OP_MSG.md
const (
	header = 16
	flags  = 4
	opMsg  = 2013
	// A driver greets by opQuery, which is answered by opReply.
	opQuery, opReply = 2004, 1

	// mostReply bounds the length of a reply to Ask, and mostCommand that of what a driver sends.
	mostReply   = 1 << 20
	mostCommand = 48 << 20
)

// Ask sends a command and returns the document of the reply.
func Ask(conn io.ReadWriter, command any) (bson.Raw, error) {
	if err := write(conn, opMsg, 0, make([]byte, flags+1), command); err != nil {
		return nil, err
	}
	code, _, body, err := read(conn, mostReply)
	if err != nil {
		return nil, err
	}
	if code != opMsg || len(body) < flags+5 || body[flags] != 0 {
		return nil, errors.New("the reply is not one of MongoDB's")
	}
	raw := bson.Raw(body[flags+1:])
	raw = raw[:min(uint64(binary.LittleEndian.Uint32(raw)), uint64(len(raw)))] // A checksum may follow.
	if raw.Validate() != nil {
		return nil, errors.New("the reply is broken")
	}
	return raw, nil
}

// Serve answers a driver's commands until the connection ends.
func Serve(conn io.ReadWriter, answer func(command bson.Raw) bson.D) error {
	for {
		code, id, body, err := read(conn, mostCommand)
		if err != nil {
			return err
		}
		asked, err := commandOf(code, body)
		if err != nil {
			return err
		}
		as, before := opMsg, make([]byte, flags+1)
		if code == opQuery {
			as, before = opReply, append(make([]byte, 16), 1, 0, 0, 0) // Flags, cursor and start; one document.
		}
		if err := write(conn, as, id, before, answer(asked)); err != nil {
			return err
		}
	}
}

// commandOf is the command in a message. Documents in a section of their own, as of an insert, are put in as an array.
func commandOf(code uint32, body []byte) (bson.Raw, error) {
	switch rest := body[flags:]; code {
	case opQuery: // The name of a collection, how many to skip, how many to return, and the document.
		_, rest, _ = bytes.Cut(rest, []byte{0})
		return bson.Raw(rest[8:]), nil
	case opMsg:
		var d bson.D
		for len(rest) > 0 {
			kind, size := rest[0], binary.LittleEndian.Uint32(rest[1:])
			section := rest[1 : 1+size]
			rest = rest[1+size:]
			if kind == 0 {
				if err := bson.Unmarshal(section, &d); err != nil {
					return nil, err
				}
				continue
			}
			name, docs, _ := bytes.Cut(section[4:], []byte{0})
			list := bson.A{}
			for len(docs) > 0 {
				n := binary.LittleEndian.Uint32(docs)
				list, docs = append(list, bson.Raw(docs[:n])), docs[n:]
			}
			d = append(d, bson.E{Key: string(name), Value: list})
		}
		return bson.Marshal(d)
	}
	return nil, errors.New("an unknown kind of message")
}

// write sends a message that ends with a document.
func write(w io.Writer, code int, to uint32, before []byte, doc any) error {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return err
	}
	out := append(append(make([]byte, header), before...), raw...)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	binary.LittleEndian.PutUint32(out[8:], to)
	binary.LittleEndian.PutUint32(out[12:], uint32(code))
	_, err = w.Write(out)
	return err
}

// read reads a message.
func read(r io.Reader, most uint32) (code, id uint32, body []byte, err error) {
	head := make([]byte, header)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head)
	if length < header+flags || length > most {
		return 0, 0, nil, errors.New("this is no message of MongoDB's")
	}
	body = make([]byte, length-header)
	_, err = io.ReadFull(r, body)
	return binary.LittleEndian.Uint32(head[12:]), binary.LittleEndian.Uint32(head[4:]), body, err
}
