package etcd

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI.
type address struct {
	// hosts are the endpoints, with their ports.
	hosts     []string
	encrypted bool
	// prefix is that of the keys, without a slash at its end.
	prefix string

	user, passwordFile        string
	ca, cert, key, serverName string
	// skew is Options.ServerSkew, or zero.
	skew      time.Duration
	oneMember bool
}

func (a address) scheme() string {
	if a.encrypted {
		return "etcds://"
	}
	return "etcd://"
}

// web is the URL of a path of an endpoint.
func (a address) web(host, path string) string {
	return "http" + strings.TrimPrefix(a.scheme(), "etcd") + host + path
}

const (
	// mostHosts bounds the endpoints of a URI.
	mostHosts = 32
	// mostPrefix bounds a prefix, in bytes.
	mostPrefix = 200
)

// They are compiled when they are first used, not by each program that starts: such bounds make them large.
var (
	hostName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9.])?$`) })
	keyPrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`) })
)

// parseURI takes a URI apart, and returns all its faults. They quote no part of it but the names of parameters that
// look like names: anything else may be part of a password.
func parseURI(uri string) (a address, errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("uri: "+format, args...)) }
	a.prefix = DefaultPrefix
	rest, ok := strings.CutPrefix(uri, "etcd://")
	if !ok {
		rest, ok = strings.CutPrefix(uri, "etcds://")
		a.encrypted = true
	}
	if !ok {
		bad("must begin with etcd:// or etcds://")
		return a, errs
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.ContainsAny(rest, "@#") {
		bad("must hold neither a user nor a password before the host: give user=NAME, and the password elsewhere")
		return a, errs
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if err := a.locate(hosts); err != nil {
		errs = append(errs, err)
	}
	if path = strings.TrimSuffix(path, "/"); path != "" {
		a.prefix = path
		if !keyPrefix().MatchString(path) || len(path) > mostPrefix {
			bad("the prefix must be names of letters, digits, dots, underscores and hyphens with slashes between them, and have at most %d bytes", mostPrefix)
		}
	}
	return a, append(errs, a.parameters(query)...)
}

// locate takes in the endpoints.
func (a *address) locate(hosts string) error {
	all := strings.Split(hosts, ",")
	if len(all) > mostHosts {
		return fmt.Errorf("uri: must have at most %d endpoints", mostHosts)
	}
	for _, h := range all {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			host, port = strings.TrimSuffix(strings.TrimPrefix(h, "["), "]"), strconv.Itoa(DefaultPort)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if net.ParseIP(host) == nil && !hostName().MatchString(host) || err != nil || n < 1 {
			return errors.New("uri: each endpoint must be a host, or HOST:PORT with a port from 1 to 65535")
		}
		a.hosts = append(a.hosts, net.JoinHostPort(host, port))
	}
	return nil
}

// parameters takes in what comes after the question mark.
func (a *address) parameters(query string) []error {
	texts := map[string]*string{"user": &a.user, "passwordFile": &a.passwordFile, "ca": &a.ca, "cert": &a.cert, "key": &a.key, "serverName": &a.serverName}
	known := []string{"user", "passwordFile", "ca", "cert", "key", "serverName", "serverSkew", "oneMember"}
	errs := storekit.Parameters(query, known, func(name, value string) (err error) {
		switch name {
		case "serverSkew":
			a.skew, err = storekit.SkewOf(value)
		case "oneMember":
			a.oneMember, err = storekit.Truth(value)
		default:
			*texts[name], err = storekit.Text(value)
		}
		return err
	})
	if given, _ := url.ParseQuery(query); given.Has("password") {
		errs = append(errs, fmt.Errorf("uri: must hold no password: give passwordFile=PATH, or %s in the environment", passwordVariable))
	}
	if (a.cert == "") != (a.key == "") {
		errs = append(errs, errors.New("uri: cert and key go together"))
	}
	if !a.encrypted && (a.ca != "" || a.cert != "" || a.key != "" || a.serverName != "") {
		errs = append(errs, errors.New("uri: ca, cert, key and serverName go with etcds://"))
	}
	if a.user == "" && a.passwordFile != "" {
		errs = append(errs, errors.New("uri: passwordFile goes with user"))
	}
	return errs
}

// Redact returns a URI that may be shown. Those that Open accepts hold no secret and come back as they are; of any
// other no more than the scheme is shown.
func Redact(uri string) string {
	if _, errs := parseURI(uri); len(errs) == 0 {
		return uri
	}
	return storekit.Masked(uri, "etcd://", "etcds://")
}
