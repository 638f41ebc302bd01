package storekit

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/internal/scrub"
)

// MostSkew bounds what people may assume of clocks: with more, no slot could be worked in.
const MostSkew = time.Hour

// They are compiled when they are first used, not by each program that starts: such bounds make them large.
var (
	parameterName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{1,24}$`) })
	hostName      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`) })
	folderName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`) })
)

// Parameters reads those of a URI's query. set is called with each that is known, percent-decoded, and says what is
// wrong with its value, such as "must be true or false". The errors, one for each fault, quote nothing of the query
// but names that look like names: anything else may be half a key.
func Parameters(query string, known []string, set func(name, value string) error) (errs []error) {
	return eachParameter(query, parameterName(), func(name, raw string, has bool) error {
		if !slices.Contains(known, name) {
			return fmt.Errorf("is unknown: use %s", strings.Join(known, ", "))
		}
		value, err := url.QueryUnescape(raw)
		if !has || err != nil {
			return errors.New("has an invalid value")
		}
		return set(name, value)
	})
}

// eachParameter calls a function with each parameter whose name has a form, with its value as it stands in the query, if it
// has one. What the function says of one follows the parameter's name in an error.
func eachParameter(query string, form *regexp.Regexp, each func(name, raw string, has bool) error) (errs []error) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, raw, has := strings.Cut(pair, "=")
		if !form.MatchString(name) {
			errs = append(errs, errors.New("uri: each parameter must be written name=value"))
			continue
		}
		err := errors.New("is given twice")
		if !seen[name] {
			err = each(name, raw, has)
		}
		if seen[name] = true; err != nil {
			errs = append(errs, fmt.Errorf("uri: parameter %s %w", name, err))
		}
	}
	return errs
}

// Masked is what may be shown of a URI that can't be read: its scheme, if it is one of those given, such as "s3://".
func Masked(uri string, schemes ...string) string {
	for _, scheme := range schemes {
		if strings.HasPrefix(uri, scheme) {
			return scheme + scrub.Mask
		}
	}
	return scrub.Mask
}

// Text reads the value of a parameter that is a name or a path.
func Text(value string) (string, error) {
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("has an invalid value")
	}
	return value, nil
}

// Truth reads the value of a parameter.
func Truth(value string) (bool, error) {
	v, err := strconv.ParseBool(value)
	if err != nil {
		return false, errors.New("must be true or false")
	}
	return v, nil
}

// SkewOf reads how far clocks are assumed to be apart.
func SkewOf(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > MostSkew {
		return 0, fmt.Errorf("must be a duration above 0, at most %v, such as 500ms", MostSkew)
	}
	return d, nil
}

// Endpoint reads the URL of a service: scheme and host, perhaps with a port, and a path if the caller allows one.
func Endpoint(value string) (*url.URL, error) {
	wrong := errors.New("must be of the form https://HOST:PORT")
	u, err := url.Parse(value)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, wrong
	}
	if host := u.Hostname(); net.ParseIP(host) == nil && !hostName().MatchString(host) {
		return nil, wrong
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n < 1) || strings.HasSuffix(u.Host, ":") {
		return nil, wrong
	}
	return u, nil
}

// Plain reports whether a URL is without TLS, to another machine.
func Plain(u *url.URL) bool {
	return u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback()
}

// CheckFolder refuses the name of a folder of objects if it has characters that need an encoding somewhere on their
// way. It may be empty.
func CheckFolder(name string) error {
	if name == "" {
		return nil
	}
	if len(name) > 512 || !folderName().MatchString(name) {
		return errors.New("uri: the folder must have at most 512 of A-Z a-z 0-9 . _ - and single slashes between")
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.Trim(part, ".") == "" {
			return errors.New("uri: no part of the folder may be made of dots")
		}
	}
	return nil
}

// ServerSkew is how far servers' clocks are assumed to be apart: that of Options or of the URI, or else a default.
func ServerSkew(option, uri, otherwise time.Duration) (time.Duration, error) {
	switch {
	case option < 0:
		return 0, fmt.Errorf("options: ServerSkew %v must not be negative", option)
	case option != 0 && uri != 0 && option != uri:
		return 0, fmt.Errorf("options: serverSkew %v in the URI and %v in Options: give one", uri, option)
	}
	return cmp.Or(option, uri, otherwise), nil
}
