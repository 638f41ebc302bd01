package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// The schemes of URIs.
const (
	scheme               = "redis"
	schemeTLS            = "rediss"
	schemeSentinel       = "redis+sentinel"
	schemeSentinelTLS    = "rediss+sentinel"
	defaultPort          = "6379"
	defaultSentinelPort  = "26379"
	mostSkew             = time.Hour
	leastWait, mostWait  = 10 * time.Millisecond, time.Minute
	mostReplicas, mostDB = 100, 1 << 20
)

// address is a URI, taken apart.
type address struct {
	scheme string
	// hosts are hosts with ports: one, or those of the sentinels of a service.
	hosts          []string
	service        string
	user, password string
	db             int
	prefix         string
	replicas       int
	wait           time.Duration
	skew           time.Duration
	// unpersistent is Options.UnsafeNoPersistence.
	unpersistent, skipVerify bool
}

var (
	hostName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	plainName   = regexp.MustCompile(`^[A-Za-z]{1,24}$`)
	serviceName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	prefixName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// parseURI takes a URI apart. Its error says all that is wrong at once, and quotes nothing but the names of
// parameters: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	var errs []error
	bad := func(text string) { errs = append(errs, errors.New("uri: "+text)) }
	name, rest, _ := strings.Cut(uri, "://")
	a.scheme = name
	switch name {
	case scheme, schemeTLS, schemeSentinel, schemeSentinelTLS:
	default:
		return address{}, errors.New("uri: must begin with redis://, rediss://, redis+sentinel:// or rediss+sentinel://")
	}
	if strings.Contains(rest, "#") {
		bad("must hold no #: in a password it is written %23")
		rest, _, _ = strings.Cut(rest, "#")
	}
	rest, query, _ := strings.Cut(rest, "?")
	// A password may hold an @ that isn't encoded. What comes after the last can't be one.
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		a.login(rest[:at], bad)
		rest = rest[at+1:]
	}
	authority, path, _ := strings.Cut(rest, "/")
	a.locate(authority, bad)
	a.name(path, bad)
	if strings.Contains(query, "@") {
		bad("in a user or password, ? is written %3F") // Even what looks like a parameter's name may be a part of it.
	} else {
		a.parameters(query, bad)
	}
	if a.skipVerify && (!a.secured() || !a.loopback()) {
		bad("insecureSkipVerify is for rediss:// and loopback addresses only")
	}
	if err := errors.Join(errs...); err != nil {
		return address{}, err
	}
	return a, nil
}

// login reads USER:PASSWORD. Without a user it is that of the server's requirepass, whose user is named default.
func (a *address) login(info string, bad func(string)) {
	user, password, ok := strings.Cut(info, ":")
	var err, userErr error
	a.user, userErr = url.PathUnescape(user)
	a.password, err = url.PathUnescape(password)
	switch {
	case err != nil || userErr != nil:
		bad("user or password is not percent-encoded correctly")
	case strings.ContainsAny(info, "/@") || strings.Contains(password, ":"):
		bad("in a user or password, : is written %3A, / %2F and @ %40")
	case !ok:
		bad("before the @ must be USER:PASSWORD or :PASSWORD; without a password there must be neither")
	case a.password == "":
		bad("there is a user without a password")
	}
}

// locate reads the hosts.
func (a *address) locate(authority string, bad func(string)) {
	port := defaultPort
	list := []string{authority}
	if a.sentinels() {
		port, list = defaultSentinelPort, strings.Split(authority, ",")
	}
	for _, h := range list {
		host, err := hostPort(h, port)
		if err != nil {
			bad(err.Error())
			return
		}
		a.hosts = append(a.hosts, host)
	}
}

func hostPort(h, port string) (string, error) {
	host := h
	switch at := strings.LastIndex(h, ":"); {
	case strings.HasPrefix(h, "[") && strings.HasSuffix(h, "]"):
		host = h[1 : len(h)-1]
	case at >= 0:
		var err error
		if host, port, err = net.SplitHostPort(h); err != nil {
			return "", errors.New("a host must be HOST or HOST:PORT, and an IPv6 address be in [brackets]")
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("a port must be from 1 to 65535")
	}
	if net.ParseIP(host) == nil && !hostName.MatchString(host) {
		return "", errors.New("there must be a host, of letters, digits, dots and hyphens")
	}
	return net.JoinHostPort(host, port), nil
}

// name reads the path: a database, after the service of sentinels.
func (a *address) name(path string, bad func(string)) {
	path = strings.TrimSuffix(path, "/")
	if a.sentinels() {
		a.service, path, _ = strings.Cut(path, "/")
		if !serviceName.MatchString(a.service) {
			bad("the path must be /SERVICE or /SERVICE/DATABASE, with the name by which sentinels know the primary")
		}
	}
	if path == "" {
		return
	}
	n, err := strconv.Atoi(path)
	if err != nil || n < 0 || n > mostDB || strconv.Itoa(n) != path {
		bad("the database must be a number such as 0")
		return
	}
	a.db = n
}

func (a *address) parameters(query string, bad func(string)) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case !plainName.MatchString(name):
			bad("each parameter must be written name=value")
			continue
		case seen[name]:
			bad("parameter " + name + " is given twice")
			continue
		}
		seen[name] = true
		if err := a.parameter(name, value); err != nil {
			bad(err.Error())
		} else if !ok {
			bad("parameter " + name + " has no value")
		}
	}
}

func (a *address) parameter(name, value string) (err error) {
	flag := func() bool {
		var b bool
		if b, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("parameter %s must be true or false", name)
		}
		return b
	}
	duration := func(least, most time.Duration, example string) time.Duration {
		d, parseErr := time.ParseDuration(value)
		if parseErr != nil || d < least || d > most {
			err = fmt.Errorf("parameter %s must be a duration of %v to %v, such as %s", name, least, most, example)
		}
		return d
	}
	switch name {
	case "prefix":
		if a.prefix = value; !prefixName.MatchString(value) {
			err = errors.New("parameter prefix must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit")
		}
	case "replicas":
		n, parseErr := strconv.Atoi(value)
		if a.replicas = n; parseErr != nil || n < 0 || n > mostReplicas {
			err = fmt.Errorf("parameter replicas must be 0 to %d", mostReplicas)
		}
	case "replicaWait":
		a.wait = duration(leastWait, mostWait, "2s")
	case "serverSkew":
		a.skew = duration(time.Millisecond, mostSkew, "100ms")
	case "unsafeNoPersistence":
		a.unpersistent = flag()
	case "insecureSkipVerify":
		a.skipVerify = flag()
	default:
		err = fmt.Errorf("parameter %s is unknown: use prefix, replicas, replicaWait, serverSkew, unsafeNoPersistence or insecureSkipVerify", name)
	}
	return err
}

func (a *address) sentinels() bool {
	return a.scheme == schemeSentinel || a.scheme == schemeSentinelTLS
}
func (a *address) secured() bool { return a.scheme == schemeTLS || a.scheme == schemeSentinelTLS }

// loopback says whether all hosts are of this machine.
func (a *address) loopback() bool {
	for _, h := range a.hosts {
		host, _, err := net.SplitHostPort(h)
		if err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback() {
			return false
		}
	}
	return len(a.hosts) > 0
}

// String is the URI as it may be shown.
func (a *address) String() string {
	login := ""
	if a.password != "" {
		login = url.PathEscape(a.user) + ":***@"
	}
	path := "/" + strconv.Itoa(a.db)
	if a.service != "" {
		path = "/" + a.service + path
	}
	var query []string
	add := func(name string, v any, is bool) {
		if is {
			query = append(query, fmt.Sprintf("%s=%v", name, v))
		}
	}
	add("prefix", a.prefix, a.prefix != "" && a.prefix != DefaultPrefix)
	add("replicas", a.replicas, a.replicas > 0)
	add("replicaWait", a.wait, a.wait > 0 && a.wait != DefaultReplicaWait)
	add("serverSkew", a.skew, a.skew > 0)
	add("unsafeNoPersistence", true, a.unpersistent)
	add("insecureSkipVerify", true, a.skipVerify)
	text := a.scheme + "://" + login + strings.Join(a.hosts, ",") + path
	if len(query) > 0 {
		text += "?" + strings.Join(query, "&")
	}
	return text
}

// Redact returns a URI as it may be shown: with *** in place of its password. Of one that Open doesn't accept no more
// than the scheme is shown.
func Redact(uri string) string {
	if a, err := parseURI(uri); err == nil {
		return a.String()
	}
	return storekit.Masked(uri, scheme+"://", schemeTLS+"://", schemeSentinel+"://", schemeSentinelTLS+"://")
}
