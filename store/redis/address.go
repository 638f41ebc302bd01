package redis

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
	leastWait, mostWait  = 10 * time.Millisecond, time.Minute
	mostReplicas, mostDB = 100, 1 << 20
)

var schemes = []string{scheme, schemeTLS, schemeSentinel, schemeSentinelTLS}

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

// They are compiled when they are first used, not by each program that starts: such bounds make them large.
var (
	hostName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`) })
	serviceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`) })
	prefixName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })
)

// parseURI takes a URI apart. Its error says all that is wrong at once, and quotes nothing but the names of
// parameters: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	var errs []error
	bad := func(text string) { errs = append(errs, errors.New("uri: "+text)) }
	name, rest, _ := strings.Cut(uri, "://")
	if !slices.Contains(schemes, name) {
		return address{}, errors.New("uri: must begin with redis://, rediss://, redis+sentinel:// or rediss+sentinel://")
	}
	a.scheme = name
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	a.locate(authority, bad)
	a.name(strings.TrimSuffix(path, "/"), bad)
	if strings.Contains(path+query, "@") || strings.Contains(uri, "#") {
		bad(mustEncode) // Even what looks like a parameter's name may be a part of a password.
	} else {
		errs = append(errs, a.parameters(query)...)
	}
	if a.skipVerify && (!a.secured() || !a.loopback()) {
		bad("insecureSkipVerify is for rediss:// and loopback addresses only")
	}
	if err := errors.Join(errs...); err != nil {
		return address{}, err
	}
	return a, nil
}

const mustEncode = "the characters / ? # @ : and % must be percent-encoded in a user and a password"

// locate reads USER:PASSWORD@, and the hosts after it. Without a user the password is that of the server's requirepass, whose user
// is named default.
func (a *address) locate(authority string, bad func(string)) {
	login := ""
	if at := strings.LastIndex(authority, "@") + 1; at > 0 {
		login, authority = authority[:at], authority[at:]
	}
	port, list := defaultPort, []string{authority}
	if a.sentinels() {
		port, list = defaultSentinelPort, strings.Split(authority, ",")
	}
	for _, one := range list {
		u, err := url.Parse("redis://" + login + one)
		if err != nil || strings.Count(login, ":") > 1 {
			bad("a host must be HOST or HOST:PORT, with an IPv6 address in [brackets]; before the @ must be USER:PASSWORD or :PASSWORD; " + mustEncode)
			return
		}
		host, port := u.Hostname(), cmp.Or(u.Port(), port)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strings.HasSuffix(u.Host, ":") {
			bad("a port must be from 1 to 65535")
		}
		if net.ParseIP(host) == nil && !hostName().MatchString(host) || strings.Contains(host, ":") != strings.HasPrefix(u.Host, "[") {
			bad("there must be a host, of letters, digits, dots and hyphens, or an IPv6 address in [brackets]")
		}
		a.hosts = append(a.hosts, net.JoinHostPort(host, port))
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	if login != "" && a.password == "" {
		bad("there is a user without a password: before the @ must be USER:PASSWORD or :PASSWORD")
	}
}

// name reads the path: a database, after the service of sentinels.
func (a *address) name(path string, bad func(string)) {
	if a.sentinels() {
		a.service, path, _ = strings.Cut(path, "/")
		if !serviceName().MatchString(a.service) {
			bad("the path must be /SERVICE or /SERVICE/DATABASE, with the name by which sentinels know the primary")
		}
	}
	n, err := strconv.Atoi(cmp.Or(path, "0"))
	if err != nil || n < 0 || n > mostDB || strconv.Itoa(n) != cmp.Or(path, "0") {
		bad("the database must be a number such as 0")
	}
	a.db = n
}

// parameters reads what comes after the question mark.
func (a *address) parameters(query string) []error {
	known := []string{"prefix", "replicas", "replicaWait", "serverSkew", "unsafeNoPersistence", "insecureSkipVerify"}
	return storekit.Parameters(query, known, func(name, value string) (err error) {
		switch name {
		case "prefix":
			a.prefix, err = value, checkName(value)
		case "replicas":
			if a.replicas, err = strconv.Atoi(value); err != nil || a.replicas < 0 || a.replicas > mostReplicas {
				err = fmt.Errorf("must be 0 to %d", mostReplicas)
			}
		case "replicaWait":
			if a.wait, err = time.ParseDuration(value); err != nil || a.wait < leastWait || a.wait > mostWait {
				err = fmt.Errorf("must be a duration of %v to %v, such as 2s", leastWait, mostWait)
			}
		case "serverSkew":
			a.skew, err = storekit.SkewOf(value)
		case "unsafeNoPersistence":
			a.unpersistent, err = storekit.Truth(value)
		default:
			a.skipVerify, err = storekit.Truth(value)
		}
		return err
	})
}

func (a *address) sentinels() bool {
	return a.scheme == schemeSentinel || a.scheme == schemeSentinelTLS
}
func (a *address) secured() bool { return a.scheme == schemeTLS || a.scheme == schemeSentinelTLS }

// loopback says whether all hosts are of this machine.
func (a *address) loopback() bool {
	for _, h := range a.hosts {
		if strings.HasPrefix(h, "/") {
			continue // a socket
		}
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
