package mysql

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI.
type address struct {
	storekit.DatabaseURI
	table          string
	tls            string
	ca, cert, key  string
	appName        string
	connectTimeout time.Duration
	// skew is Options.ServerSkew, or zero, and maxConns Options.MaxConns.
	skew     time.Duration
	maxConns int
}

// form is that of the URIs.
var form = storekit.URIForm{
	Schemes: []string{"mysql", "mariadb"}, Port: "3306", Socket: "socket=/PATH",
	Reserved: "\\.`", MostName: 64 * 4,
}

const (
	// mostConns bounds maxConns, and mostTimeout connectTimeout.
	mostConns   = 1000
	mostTimeout = time.Minute
)

// The values of tls.
const (
	tlsVerify = "true"
	tlsSkip   = "skip-verify"
	tlsOff    = "false"
)

// tableName is a name that looks the same in SQL, URIs and shells. Seven bytes are left for the roster's.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,56}$`)

// parseURI takes a URI apart. Its error has all faults, a line each. It quotes no part of the URI but the names of
// parameters that look like names: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	errs := a.Read(uri, form, a.parameter)
	switch {
	case len(a.Hosts) == 0 && a.Socket == "":
		// Read has said so.
	case a.Socket != "" && a.tls != "" && a.tls != tlsOff:
		errs = append(errs, errors.New("uri: there is no TLS on a Unix socket: leave out tls"))
	case a.tls == "" && a.Loopback():
		a.tls = tlsOff
	case a.tls == "":
		a.tls = tlsVerify
	}
	if a.ca != "" && a.tls != tlsVerify || a.tls == tlsOff && a.cert != "" {
		errs = append(errs, errors.New("uri: tlsCA is for tls=true, and tlsCert for TLS"))
	}
	if (a.cert == "") != (a.key == "") {
		errs = append(errs, errors.New("uri: tlsCert and tlsKey come together"))
	}
	return a, errors.Join(errs...)
}

// parameter reads one, and says what is wrong with it.
func (a *address) parameter(name, value string) error {
	must := func(ok bool, what string) error {
		if ok {
			return nil
		}
		return errors.New("must be " + what)
	}
	path := func(to *string) error {
		*to = value
		return must(!strings.ContainsAny(value, "\n\r"), "the path of a file")
	}
	var err error
	switch name {
	case "socket":
		if len(a.Hosts) > 0 {
			return errors.New("is for a Unix socket, beside no host")
		}
		a.Socket = value
		return must(strings.HasPrefix(value, "/") && !strings.ContainsAny(value, "\n\r"), "the path of a Unix socket")
	case "table":
		a.table = value
		return must(tableName.MatchString(value), "a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 57")
	case "tls":
		a.tls = value
		return must(value == tlsVerify || value == tlsSkip || value == tlsOff, "true, skip-verify or false")
	case "tlsCA":
		return path(&a.ca)
	case "tlsCert":
		return path(&a.cert)
	case "tlsKey":
		return path(&a.key)
	case "appName":
		a.appName = value
		return must(isAppName(value), "1 to 63 printable ASCII characters without , and :")
	case "connectTimeout":
		a.connectTimeout, err = time.ParseDuration(value)
		return must(err == nil && a.connectTimeout > 0 && a.connectTimeout <= mostTimeout, "a duration above 0, at most 1m0s, such as 3s")
	case "serverSkew":
		a.skew, err = storekit.SkewOf(value)
		return err
	case "maxConns":
		a.maxConns, err = strconv.Atoi(value)
		return must(err == nil && a.maxConns > 0 && a.maxConns <= mostConns, "a number from 1 to 1000")
	}
	return errors.New("is unknown: use table, tls, tlsCA, tlsCert, tlsKey, connectTimeout, appName, socket, serverSkew or maxConns; give a password before the host, or in MYSQL_PWD")
}

// isAppName reports whether a name of a program can be given to a server: the driver separates by commas and colons.
func isAppName(name string) bool {
	return name != "" && len(name) <= 63 && strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c > '~' || c == ',' || c == ':' }) < 0
}

// place is where the hosts are, for people.
func (a *address) place() string { return a.Place(form) }

// Redact returns a URI that may be shown. Of one that Open accepts, the password is masked, and what stands in its
// place without a user; of any other no more than the scheme is shown.
func Redact(uri string) string {
	a, err := parseURI(uri)
	return a.Redact(uri, form, err)
}
