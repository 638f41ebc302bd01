package storekit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/store/internal/document"
)

// members are the values of an object by name.
func members(raw []byte) (document.Values[json.RawMessage], error) {
	in := json.NewDecoder(bytes.NewReader(raw))
	if first, err := in.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	values := document.Values[json.RawMessage]{}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, errors.New("is broken JSON")
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil, errors.New("is broken JSON")
		}
		// The names of an object are strings.
		values[name.(string)] = append(values[name.(string)], value)
	}
	if _, err := in.Token(); err != nil || in.More() {
		return nil, errors.New("is broken JSON")
	}
	return values, nil
}

// source reads single fields of a document.
type source struct {
	values document.Values[json.RawMessage]
	faults *document.Faults
}

// value is that of a field, or nil if it is missing or null.
func (d source) value(name string) json.RawMessage {
	v := d.values.One(name, d.faults)
	if string(v) == "null" {
		return nil
	}
	return v
}

// wrong notes a value of a type that can't be used.
func (d source) wrong(name string, v json.RawMessage, want string) {
	if v == nil {
		d.faults.Add(name, "is missing")
		return
	}
	kind := "a number"
	switch v[0] {
	case '"':
		kind = "a string"
	case '{':
		kind = "an object"
	case '[':
		kind = "an array"
	case 't', 'f':
		kind = "a boolean"
	}
	d.faults.Add(name, "is "+kind+", must be "+want)
}

func (d source) Text(name string, required bool, most int) string {
	v := d.value(name)
	if v == nil && !required {
		return ""
	}
	if len(v) == 0 || v[0] != '"' {
		d.wrong(name, v, "a string")
		return ""
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil || !utf8.Valid(v) || loneSurrogate(v) {
		d.faults.Add(name, document.NotUTF8)
		return ""
	}
	return document.Bounded(name, s, most, d.faults)
}

// loneSurrogate reports whether a JSON string holds half a character, which Go would
// replace: a Claim must come back as it is.
func loneSurrogate(v json.RawMessage) bool {
	unit := func(i int) (uint64, bool) {
		if i+6 > len(v) || v[i] != '\\' || v[i+1] != 'u' {
			return 0, false
		}
		u, err := strconv.ParseUint(string(v[i+2:i+6]), 16, 16)
		return u, err == nil
	}
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			continue
		}
		switch u, ok := unit(i); {
		case !ok:
			i++ // an escape of one character
		case u >= 0xdc00 && u <= 0xdfff:
			return true
		case u >= 0xd800 && u <= 0xdbff:
			if low, ok := unit(i + 6); !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// Time reads RFC 3339 with at most milliseconds. No worker writes finer times, because
// windows are whole milliseconds.
func (d source) Time(name string, required bool) time.Time {
	v := d.value(name)
	if v == nil && !required {
		return time.Time{}
	}
	if len(v) == 0 || v[0] != '"' {
		d.wrong(name, v, "a time such as 2006-01-02T15:04:05.000Z")
		return time.Time{}
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		s = ""
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	t = t.UTC()
	if year := t.Year(); err != nil || len(s) > 40 || year < 1 || year > 9999 || !t.Equal(t.Truncate(time.Millisecond)) {
		d.faults.Add(name, fmt.Sprintf("%.50q is no time such as 2006-01-02T15:04:05.000Z", s))
		return time.Time{}
	}
	return t
}

func (d source) Whole(name string) int64 {
	v := d.value(name)
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= -maxExact && n <= maxExact {
		return n
	}
	if len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && f == math.Trunc(f) && math.Abs(f) <= maxExact {
			return int64(f)
		}
	}
	d.wrong(name, v, "a whole number below 2^53")
	return 0
}

// Token reads a whole number, or one in decimal digits that a double doesn't hold.
func (d source) Token(name string) int64 {
	v := d.value(name)
	if len(v) < 2 || v[0] != '"' {
		return d.Whole(name)
	}
	s := string(v[1 : len(v)-1])
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= maxExact || strconv.FormatInt(n, 10) != s {
		d.wrong(name, v, "a whole number")
		return 0
	}
	return n
}

func (d source) Part(name string) document.Source {
	values, err := members(d.value(name))
	if err != nil {
		return nil
	}
	return source{values, d.faults}
}
