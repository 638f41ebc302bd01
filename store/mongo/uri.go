package mongo

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
	"time"

	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI. The driver gets it without our own parts.
type address struct {
	// driver is the URI for the driver: without our parameters. It names the database,
	// because that is where credentials authenticate unless authSource or the mechanism
	// says otherwise, as with every driver:
	// https://github.com/mongodb/specifications/blob/master/source/auth/auth.md
	driver     string
	hosts      string
	database   string
	collection string
	appName    bool
	// skew is Options.ServerSkew, or zero, and unsafe Options.UnsafeUnverified.
	skew   time.Duration
	unsafe bool
	// secrets are the password, the user where that isn't a name, and the values of some
	// parameters.
	secrets scrub.Secrets
}

const (
	scheme    = "mongodb://"
	schemeSRV = "mongodb+srv://"
)

// parseURI takes a URI apart. Its errors quote no part of the URI: where a URI
// is broken, what looks like a host may be half a password.
func parseURI(uri string) (address, error) {
	prefix := scheme
	if strings.HasPrefix(uri, schemeSRV) {
		prefix = schemeSRV
	}
	rest, ok := strings.CutPrefix(uri, prefix)
	if !ok {
		return address{}, errors.New("uri: must begin with mongodb:// or mongodb+srv://")
	}
	var a address
	rest, user, err := cutUser(rest, &a.secrets)
	if err != nil {
		return address{}, err
	}
	hosts, rest, err := cutHosts(rest)
	if err != nil {
		return address{}, err
	}
	a.hosts = hosts
	path, query, _ := strings.Cut(rest, "?")
	path = strings.TrimPrefix(path, "/")
	if a.database, err = url.PathUnescape(path); err != nil {
		return address{}, errors.New("uri: the database is not percent-encoded correctly")
	}
	query, err = a.cutParameters(query)
	if err != nil {
		return address{}, err
	}
	a.driver = prefix + user + hosts + "/" + strings.ReplaceAll(path, "+", "%2B") // The driver takes + for a space.
	if query != "" {
		a.driver += "?" + query
	}
	a.secrets.Publish(a.hosts, a.database, a.collection)
	return a, nil
}

// cutUser takes user and password, with their @, off the front.
func cutUser(uri string, secrets *scrub.Secrets) (rest, user string, err error) {
	before, after, found := strings.Cut(uri, "@")
	if !found {
		return uri, "", nil
	}
	name, password, _ := strings.Cut(before, ":")
	// With another @, what looks like hosts and database may be half a password.
	names, _, _ := strings.Cut(after, "?")
	if strings.Contains(password, ":") || strings.Contains(before, "/") || strings.Contains(names, "@") {
		return "", "", errors.New("uri: percent-encode the characters : / ? # [ ] @ % in user and password")
	}
	for _, s := range []string{name, password} {
		if _, err := url.PathUnescape(s); err != nil {
			return "", "", errors.New("uri: user or password is not percent-encoded correctly: a % must be written %25")
		}
	}
	_, query, _ := strings.Cut(after, "?")
	secrets.HideLogin(before, query)
	return after, before + "@", nil
}

// hostPart is the part before the path.
func hostPart(uri string) string {
	if i := strings.IndexAny(uri, "/?"); i >= 0 {
		return uri[:i]
	}
	return uri
}

func cutHosts(uri string) (hosts, rest string, err error) {
	hosts = hostPart(uri)
	rest = uri[len(hosts):]
	if strings.HasPrefix(rest, "?") {
		return "", "", errors.New("uri: there must be a / between the hosts and the ?")
	}
	if path, _, _ := strings.Cut(uri, "?"); strings.Contains(path, "=") {
		// Taken for a name, a parameter would be shown, whatever it holds.
		return "", "", errors.New("uri: there must be /? between the hosts, or ? between the database, and the parameters (a = in a name must be written %3D)")
	}
	for i, h := range strings.Split(hosts, ",") {
		host, err := url.PathUnescape(h)
		if err != nil || host == "" {
			return "", "", fmt.Errorf("uri: host %d is empty or not percent-encoded correctly", i+1)
		}
		_, port, err := net.SplitHostPort(host)
		if addr := (*net.AddrError)(nil); errors.As(err, &addr) && addr.Err == "missing port in address" {
			continue
		}
		if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || n < 1 || n > 65535 {
			return "", "", fmt.Errorf("uri: host %d: the port must be a number from 1 to 65535 (is the @ after the password missing?)", i+1)
		}
	}
	return hosts, rest, nil
}

// cutParameters takes our parameters out of the query and notes its secrets.
func (a *address) cutParameters(query string) (string, error) {
	var kept []string
	seen := map[string]bool{}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		rawName, rawValue, ok := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		if !ok || nameErr != nil || name == "" {
			return "", errors.New("uri: each parameter must be written name=value, percent-encoded")
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return "", fmt.Errorf("uri: parameter %.40q is not percent-encoded correctly", name)
		}
		lower := strings.ToLower(name)
		own, isOwn := ownParameters[lower]
		switch {
		case isOwn && seen[lower]:
			return "", fmt.Errorf("uri: parameter %s is given twice", own)
		case isOwn:
			if err := a.take(own, value); err != nil {
				return "", err
			}
			seen[lower] = true
			continue
		case strings.HasPrefix(lower, "serversk") || strings.HasPrefix(lower, "unsafe"):
			return "", fmt.Errorf("uri: parameter %.40q is unknown: did you mean serverSkew or unsafeUnverified?", name)
		case strings.HasPrefix(lower, "col"):
			// The driver ignores what it doesn't know. Here that would mean another
			// ledger than was meant, and two leaders.
			return "", fmt.Errorf("uri: parameter %.40q is unknown: did you mean collection?", name)
		case lower == "appname":
			a.appName = true
		}
		kept = append(kept, pair)
		if !scrub.IsSecret(name) {
			a.secrets.Publish(pair, value)
			continue
		}
		a.secrets.Hide(rawValue)
		for _, property := range slices.Concat(strings.Split(rawValue, ","), strings.Split(value, ",")) {
			_, v, _ := strings.Cut(property, ":")
			a.secrets.Hide(cmp.Or(v, property))
		}
	}
	return strings.Join(kept, "&"), nil
}

// ownParameters are our names of parameters, by their lower case.
var ownParameters = map[string]string{"collection": "collection", "serverskew": "serverSkew", "unsafeunverified": "unsafeUnverified"}

// take reads a parameter of ours.
func (a *address) take(name, value string) (err error) {
	switch name {
	case "collection":
		if value == "" {
			return errors.New("uri: parameter collection is empty")
		}
		a.collection = value
	case "serverSkew":
		a.skew, err = storekit.SkewOf(value)
	case "unsafeUnverified":
		a.unsafe, err = storekit.Truth(value)
	}
	if err != nil {
		return fmt.Errorf("uri: parameter %s%s %w", name, is(value), err)
	}
	return nil
}

// plainValue matches a value that can be no part of a URI, such as half a password.
var plainValue = regexp.MustCompile(`^[\w.+-]{0,40}$`)

// is quotes the value of a parameter for an error, if that is safe.
func is(value string) string {
	if !plainValue.MatchString(value) {
		return ""
	}
	return fmt.Sprintf(" is %q: it", value)
}

// Redact returns a URI that may be shown: user, password and the values of
// parameters that may hold secrets are replaced by ***. Of a URI that can't be
// parsed it shows no more than the scheme.
func Redact(uri string) string {
	if _, err := parseURI(uri); err != nil {
		return storekit.Masked(uri, scheme, schemeSRV)
	}
	prefix, rest, _ := strings.Cut(uri, "://")
	if _, after, ok := strings.Cut(rest, "@"); ok {
		rest = "***:***@" + after
	}
	hosts, query, found := strings.Cut(rest, "?")
	head := prefix + "://" + hosts
	if !found {
		return head
	}
	pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err != nil || scrub.IsSecret(plain) {
			pairs[i] = name + "=" + scrub.Mask
		}
	}
	return head + "?" + strings.Join(pairs, "&")
}

// checkDatabase returns the fault of a database name, or nil.
func checkDatabase(name string) error {
	if name == "" || len(name) > 63 {
		return fmt.Errorf("database %.70q: must have 1 to 63 bytes", name)
	}
	if i := strings.IndexAny(name, "/\\. \"$*<>:|?\x00"); i >= 0 {
		return fmt.Errorf("database %q: character %q is not allowed", name, name[i])
	}
	if slices.Contains([]string{"admin", "local", "config"}, name) {
		return fmt.Errorf("database %q: belongs to the server, use one of your own", name)
	}
	return nil
}

// checkCollection returns the fault of a collection name, or nil.
func checkCollection(name string) error {
	switch {
	case name == "" || len(name) > 120:
		return fmt.Errorf("collection %.130q: must have 1 to 120 bytes", name)
	case strings.ContainsAny(name, "$\x00"):
		return fmt.Errorf("collection %q: $ and NUL are not allowed", name)
	case strings.HasPrefix(name, "system."):
		return fmt.Errorf("collection %q: names that begin with system. belong to the server", name)
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, "."):
		return fmt.Errorf("collection %q: must not begin or end with a dot", name)
	}
	return nil
}
