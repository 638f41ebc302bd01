package main

import (
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// secrets are texts that must not be shown. The stores hide what they know of;
// this is the last line, behind all that leasectl itself writes.
type secrets []string

// secretsOf finds what may be secret in a store's URI, well-formed or not.
func secretsOf(uri string) secrets {
	var s secrets
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

// add takes in a secret in the forms in which a message may hold it. What is too
// short to be one would only spoil other text.
func (s *secrets) add(raw string) {
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

// addParts takes in a secret and its parts. Of a URI whose secrets aren't encoded,
// or that stands where another text is expected, parts may show.
func (s *secrets) addParts(raw string) {
	s.add(raw)
	for _, part := range strings.FieldsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("@:/?#=&;,", r) }) {
		s.add(part)
	}
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// scrub takes the secrets, what begins as one of them, and whatever looks like a
// URI's user and password, out of a text. All are looked for before any is taken
// out: of two that overlap, one would hide only a part of the other.
func (s secrets) scrub(text string) string {
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

// scrubber writes texts without the secrets. Each Write must be whole lines.
type scrubber struct {
	to      io.Writer
	secrets secrets
}

func (s scrubber) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.to, s.secrets.scrub(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
