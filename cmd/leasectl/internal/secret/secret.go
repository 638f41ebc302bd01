// Package secret keeps passwords and keys out of everything that leasectl writes.
package secret

import (
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// List holds texts that must not be shown. The stores hide the secrets that they
// know; this is the last line of defence, applied to everything that leasectl
// itself writes.
type List []string

// InURI finds what may be secret in a store's URI, well-formed or not.
func InURI(uri string) List {
	var s List
	_, rest, found := strings.Cut(uri, "://")
	if !found {
		return nil
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		_, password, _ := strings.Cut(rest[:i], ":")
		s.addParts(password)
	}
	_, query, _ := strings.Cut(rest, "?")
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if secretName.MatchString(name) {
			s.addParts(value)
		}
	}
	slices.SortFunc(s, func(a, b string) int { return len(b) - len(a) })
	return s
}

var (
	secretName = regexp.MustCompile(`(?i)password|secret|token|credential|properties|key`)
	// userInfo is the part of any URI before its @.
	userInfo = regexp.MustCompile(`://[^\s"]*@`)
)

// Add adds a secret in every form in which a message may hold it. A text that is
// too short to be a secret would only spoil other text, and is left out.
func (s *List) Add(raw string) {
	plain := unescaped(raw)
	forms := []string{raw, plain, url.QueryEscape(plain), url.PathEscape(plain)}
	for i, f := range forms {
		if slices.Contains(forms[:i], f) {
			continue
		}
		quoted := strconv.Quote(f)
		for _, form := range []string{f, quoted[1 : len(quoted)-1]} {
			if len(form) >= 3 && !slices.Contains(*s, form) {
				*s = append(*s, form)
			}
		}
	}
}

// addParts adds a secret and its parts: an error may show parts of a URI whose
// secrets aren't encoded, or that stands where another text is expected.
func (s *List) addParts(raw string) {
	s.Add(raw)
	for _, part := range strings.FieldsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("@:/?#=&;,", r) }) {
		s.Add(part)
	}
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// Scrub returns a text without the secrets, without what begins like one of them,
// and without whatever looks like a URI's user and password. It finds all of them
// before it removes any: of two that overlap, one would hide only a part of the
// other.
func (s List) Scrub(text string) string {
	type span struct {
		from, to int
		by       string
	}
	var spans []span
	for _, at := range userInfo.FindAllStringIndex(text, -1) {
		spans = append(spans, span{at[0] + len("://"), at[1] - len("@"), "***:***"})
	}
	for _, secret := range s {
		// A message may have cut it off.
		head := secret[:min(len(secret), 8)]
		for from := 0; ; from++ {
			i := strings.Index(text[from:], head)
			if i < 0 {
				break
			}
			from += i
			to := from + len(head)
			for to < len(text) && to-from < len(secret) && text[to] == secret[to-from] {
				to++
			}
			spans = append(spans, span{from, to, "***"})
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.from - b.from })
	var shown strings.Builder
	done := 0
	for i := 0; i < len(spans); {
		hidden := spans[i]
		for i++; i < len(spans) && spans[i].from < hidden.to; i++ {
			hidden.to = max(hidden.to, spans[i].to)
		}
		shown.WriteString(text[done:hidden.from] + hidden.by)
		done = hidden.to
	}
	return shown.String() + text[done:]
}

// Writer writes texts to another writer without the secrets. Each Write must be
// whole lines.
type Writer struct {
	To      io.Writer
	Secrets List
}

// Write writes p without the secrets.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.To, w.Secrets.Scrub(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
