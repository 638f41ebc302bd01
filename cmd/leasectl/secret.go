package main

import (
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
		s.add(password)
		// Of a URI whose password isn't encoded, parts may show.
		for _, part := range strings.FieldsFunc(password, func(r rune) bool { return strings.ContainsRune("@:/?#", r) }) {
			s.add(part)
		}
	}
	_, query, _ := strings.Cut(rest, "?")
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if secretName.MatchString(name) {
			s.add(value)
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
	for _, f := range []string{raw, unescaped(raw), url.QueryEscape(unescaped(raw)), url.PathEscape(unescaped(raw))} {
		quoted := strconv.Quote(f)
		for _, form := range []string{f, quoted[1 : len(quoted)-1]} {
			if len(form) >= 3 && !slices.Contains(*s, form) {
				*s = append(*s, form)
			}
		}
	}
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// scrub takes the secrets, and whatever looks like a URI's user and password,
// out of a text.
func (s secrets) scrub(text string) string {
	text = userInfo.ReplaceAllString(text, "://***:***@")
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
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
