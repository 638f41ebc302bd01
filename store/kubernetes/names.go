package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// kindLabel says what an object is: record or presence.
	kindLabel = "slotlease/kind"
	// typeLabel is its worker type, by which it is found. A label must end with a letter or a digit: what follows the
	// last one in the worker type is left out, and the object has oddLabel.
	typeLabel = "slotlease/type"
	oddLabel  = "slotlease/odd"

	kindRecord   = "record"
	kindPresence = "presence"

	// nameAnnotation has the name whose hash is the object's.
	nameAnnotation = "slotlease/name"
	// mostName is how long Kubernetes' names may be.
	mostName = 253
)

// Folders of storekit's names.
const (
	recordFolder   = "ledger/"
	presenceFolder = "roster/"
)

// object is what a name of storekit stands for: ledger/TYPE/N or roster/TYPE/ID.
type object struct {
	kind       string
	workerType string
	last       string
}

// parse takes a name of storekit apart. workerType and last may be empty in the prefix of a list.
func parse(name string) object {
	o := object{kind: kindRecord}
	rest, record := strings.CutPrefix(name, recordFolder)
	if !record {
		o.kind = kindPresence
		rest = strings.TrimPrefix(name, presenceFolder)
	}
	o.workerType, o.last, _ = strings.Cut(rest, "/")
	return o
}

// String is the name of storekit.
func (o object) String() string {
	folder := recordFolder
	if o.kind == kindPresence {
		folder = presenceFolder
	}
	return folder + o.workerType + "/" + o.last
}

// name is that in Kubernetes, a DNS subdomain: ledger-TYPE.N or roster-TYPE.id-ID, with the escapes of escape. Different
// objects have different names, and those of the records of a worker type are in the order of N. A presence whose name
// would be too long has a hash in its place.
func (o object) name() string {
	if o.kind == kindRecord {
		return "ledger-" + escape(o.workerType) + "." + o.last
	}
	if name := "roster-" + escape(o.workerType) + ".id-" + escape(o.last); len(name) <= mostName {
		return name
	}
	sum := sha256.Sum256([]byte(o.String()))
	return "roster--z" + hex.EncodeToString(sum[:]) // which no escape gives
}

// identify is the object that metadata belong to, or false if it is none of a ledger.
func identify(kind string, m metadata) (object, bool) {
	o := object{kind: kind}
	if full, hashed := m.Annotations[nameAnnotation]; hashed {
		o = parse(full)
		return o, o.kind == kind && o.name() == m.Name
	}
	first, second := "ledger-", "."
	if kind == kindPresence {
		first, second = "roster-", ".id-"
	}
	rest, known := strings.CutPrefix(m.Name, first)
	workerType, last, inside := strings.Cut(rest, second)
	var ok bool
	o.workerType, ok = unescape(workerType)
	valid := true
	if o.last = last; kind == kindPresence {
		o.last, valid = unescape(last)
	}
	return o, known && inside && ok && valid
}

// annotations are those of an object: its name, if that in Kubernetes is a hash.
func (o object) annotations() map[string]string {
	if strings.HasPrefix(o.name(), "roster--z") {
		return map[string]string{nameAnnotation: o.String()}
	}
	return nil
}

// labels are those of an object.
func (o object) labels() map[string]string {
	l := map[string]string{kindLabel: o.kind, typeLabel: typeValue(o.workerType)}
	if l[typeLabel] != o.workerType {
		l[oddLabel] = "true"
	}
	return l
}

// selector selects the objects with a prefix of storekit's, and perhaps others.
func (o object) selector() string {
	s := kindLabel + "=" + o.kind
	if o.workerType != "" {
		s += "," + typeLabel + "=" + typeValue(o.workerType)
	}
	return s
}

// typeValue is the value of the label of a worker type. Kubernetes allows what worker types may be made of, but for the
// end.
func typeValue(workerType string) string { return strings.TrimRight(workerType, "._-") }

// escape writes a worker type or an id, of letters, digits, dots, underscores and hyphens, as a part of a DNS label that
// ends with a letter or a digit: a capital letter A as -ua, a dot as -p, an underscore as -l, and a hyphen as --, or -m at
// the end.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'A' && c <= 'Z':
			b.WriteString("-u" + string(rune(c-'A'+'a')))
		case c == '.':
			b.WriteString("-p")
		case c == '_':
			b.WriteString("-l")
		case c == '-' && i == len(text)-1:
			b.WriteString("-m")
		case c == '-':
			b.WriteString("--")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape is the text of which escape makes this one, or false if there is none.
func unescape(escaped string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '-' {
			b.WriteByte(escaped[i])
			continue
		}
		i++
		switch {
		case i >= len(escaped):
			return "", false
		case escaped[i] == 'p':
			b.WriteByte('.')
		case escaped[i] == 'l':
			b.WriteByte('_')
		case escaped[i] == 'm', escaped[i] == '-':
			b.WriteByte('-')
		case escaped[i] == 'u' && i+1 < len(escaped) && escaped[i+1] >= 'a' && escaped[i+1] <= 'z':
			i++
			b.WriteByte(escaped[i] - 'a' + 'A')
		default:
			return "", false
		}
	}
	return b.String(), escape(b.String()) == escaped
}
