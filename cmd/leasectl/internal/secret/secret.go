// Package secret keeps passwords and keys out of everything that leasectl writes. The
// stores hide the secrets that they know; this is the last line of defence.
package secret

import (
	"io"
	"regexp"
	"strings"
	"unicode"

	"github.com/slotlease/slotlease/internal/scrub"
)

// secretName is that of a parameter whose value may be secret, in a URI that may not be
// well-formed.
var secretName = regexp.MustCompile(`(?i)key`)

// keyFile matches a parameter of MongoDB's that has key in its name, and names a file.
var keyFile = regexp.MustCompile(`(?i)^(?:tls|ssl)[a-z]*KeyFile$`)

// InURI finds what may be secret in a store's URI, well-formed or not.
func InURI(uri string) (s scrub.Secrets) {
	AddURI(&s, uri)
	return s
}

// AddURI adds what InURI finds.
func AddURI(s *scrub.Secrets, uri string) {
	scheme, rest, found := strings.Cut(uri, "://")
	if !found {
		return
	}
	i := strings.LastIndex(rest, "@")
	if i >= 0 {
		if scheme == "mongodb" || scheme == "mongodb+srv" {
			_, query, _ := strings.Cut(rest[i:], "?")
			s.HideLogin(rest[:i], query)
		} else {
			s.HideUser(rest[:i])
		}
		_, password, _ := strings.Cut(rest[:i], ":")
		addParts(s, password)
	}
	place, _, _ := strings.Cut(rest[i+1:], "?")
	s.Publish(place)
	_, query, _ := strings.Cut(rest, "?")
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if keyFile.MatchString(name) {
			s.Publish(value)
			continue
		}
		if scrub.IsSecret(name) || secretName.MatchString(name) {
			addParts(s, value)
		}
	}
}

// addParts adds a secret and its parts: an error may show parts of a URI whose
// secrets aren't encoded, or that stands where another text is expected.
func addParts(s *scrub.Secrets, raw string) {
	s.Hide(raw)
	for _, part := range strings.FieldsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("@:/?#=&;,", r) }) {
		s.Hide(part)
	}
}

// Scrub returns a text without secrets. What is plain, such as the name of a file, stays as it
// is where it stands, but not in a text with a URI, of which it could be a part.
func Scrub(text string, secrets scrub.Secrets, plain []string) string {
	if strings.Contains(text, "://") {
		return secrets.Scrub(text)
	}
	var b strings.Builder
	for text != "" {
		at, found := len(text), ""
		for _, p := range plain {
			if i := strings.Index(text, p); i >= 0 && (i < at || i == at && len(p) > len(found)) {
				at, found = i, p
			}
		}
		b.WriteString(secrets.Scrub(text[:at]) + found)
		text = text[at+len(found):]
	}
	return b.String()
}

// Writer writes texts to another writer as [Scrub] returns them. Each Write must be
// whole lines.
type Writer struct {
	To      io.Writer
	Secrets scrub.Secrets
	Plain   []string
}

// Write writes p without the secrets.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.To, Scrub(string(p), w.Secrets, w.Plain)); err != nil {
		return 0, err
	}
	return len(p), nil
}
