package postgres

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI. Names of parameters are those of libpq, where it has them.
type address struct {
	storekit.DatabaseURI
	schema, table   string
	sslmode         string
	sslrootcert     string
	sslcert, sslkey string
	channelBinding  string
	connectTimeout  time.Duration
	appName         string
	// skew is Options.ServerSkew, or zero, and maxConns Options.MaxConns.
	skew     time.Duration
	maxConns int
}

// form is that of the URIs.
var form = storekit.URIForm{Schemes: []string{"postgres", "postgresql"}, Port: "5432", Socket: "host=/FOLDER", Folder: isFolder}

const (
	// mostConns bounds maxConns, and mostTimeout connect_timeout.
	mostConns   = 1000
	mostTimeout = time.Minute
)

var (
	// tableName and schemaName are names that look the same in SQL, URIs and shells. Seven bytes are left for the roster's.
	tableName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,55}$`)
	schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// sslmodes are libpq's.
var sslmodes = map[string]bool{"disable": true, "allow": true, "prefer": true, "require": true, "verify-ca": true, "verify-full": true}

// parseURI takes a URI apart. Its error has all faults, a line each. It quotes no part of the URI but the names of
// parameters that look like names: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	errs := a.Read(uri, form, a.parameter)
	switch {
	case len(a.Hosts) == 0:
		// Read has said so.
	case a.sslmode == "" && a.Loopback():
		a.sslmode = "disable"
	case a.sslmode == "":
		a.sslmode = "verify-full"
	case (a.sslmode == "allow" || a.sslmode == "prefer") && !a.Loopback():
		errs = append(errs, errors.New("uri: sslmode=allow and sslmode=prefer go on without encryption if somebody in between says so: use verify-full, or disable to do without on purpose"))
	}
	return a, errors.Join(errs...)
}

// isFolder reports whether a host is the folder of a Unix socket.
func isFolder(host string) bool {
	return strings.HasPrefix(host, "/") && !strings.ContainsAny(host, ",\n\r'\\")
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
	case "host":
		if len(a.Hosts) > 0 {
			return errors.New("is for a Unix socket, beside no other host")
		}
		a.Hosts, a.Ports = []string{value}, []string{form.Port}
		return must(isFolder(value), "the folder of a Unix socket: name other hosts before the path")
	case "schema":
		a.schema = value
		return must(schemaName.MatchString(value), "a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 63")
	case "table":
		a.table = value
		return must(tableName.MatchString(value), "a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 56")
	case "sslmode":
		a.sslmode = value
		return must(sslmodes[value], "verify-full, verify-ca, require or disable")
	case "sslrootcert":
		return path(&a.sslrootcert)
	case "sslcert":
		return path(&a.sslcert)
	case "sslkey":
		return path(&a.sslkey)
	case "channel_binding":
		a.channelBinding = value
		return must(value == "disable" || value == "prefer" || value == "require", "disable, prefer or require")
	case "application_name":
		a.appName = value
		return must(isAppName(value), "1 to 63 printable ASCII characters")
	case "connect_timeout":
		var n int
		n, err = strconv.Atoi(value)
		a.connectTimeout = time.Duration(n) * time.Second
		return must(err == nil && n > 0 && a.connectTimeout <= mostTimeout, "whole seconds, from 1 to 60")
	case "target_session_attrs":
		return must(value == "read-write" || value == "primary", "read-write, as it is without: a ledger is used on the primary alone")
	case "serverSkew":
		a.skew, err = storekit.SkewOf(value)
		return err
	case "maxConns":
		a.maxConns, err = strconv.Atoi(value)
		return must(err == nil && a.maxConns > 0 && a.maxConns <= mostConns, "a number from 1 to 1000")
	}
	return errors.New("is unknown: use schema, table, sslmode, sslrootcert, sslcert, sslkey, channel_binding, connect_timeout, application_name, host, serverSkew or maxConns; give a password before the host, in PGPASSWORD or in a password file")
}

// isAppName reports whether a server takes a name of a program as it is.
func isAppName(name string) bool {
	return name != "" && len(name) <= 63 && strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// place is where the hosts are, for people.
func (a *address) place() string { return a.Place(form) }

// Redact returns a URI that may be shown. Of one that Open accepts, the password is masked, and what stands in its
// place without a user; of any other no more than the scheme is shown.
func Redact(uri string) string {
	a, err := parseURI(uri)
	return a.Redact(uri, form, err)
}
