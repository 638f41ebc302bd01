package postgres

import (
	"errors"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI. Names of parameters are those of libpq, where it has them.
type address struct {
	sqldb.Address
	sslmode         string
	sslrootcert     string
	sslcert, sslkey string
	channelBinding  string
}

// form is that of the URIs.
var form = sqldb.Form{
	URIForm: storekit.URIForm{Schemes: []string{"postgres", "postgresql"}, Port: "5432", Socket: "host=/FOLDER", Folder: isFolder},
	Store:   "postgres", Schema: DefaultSchema, MostSchema: 63, MostTable: 56, AppName: "application_name", Timeout: "connect_timeout", Seconds: true,
	Variable: "PGPASSWORD",
	Unknown:  "is unknown: use schema, table, sslmode, sslrootcert, sslcert, sslkey, channel_binding, connect_timeout, application_name, host, serverSkew or maxConns; give a password before the host, in PGPASSWORD or in a password file",
}

// sslmodes are libpq's.
var sslmodes = map[string]bool{"disable": true, "allow": true, "prefer": true, "require": true, "verify-ca": true, "verify-full": true}

// parseURI takes a URI apart. Its error has all faults, a line each. It quotes no part of the URI but the names of
// parameters that look like names: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	errs := a.Read(uri, form.URIForm, a.parameter)
	if a.sslmode == "" {
		a.sslmode = map[bool]string{true: "disable", false: "verify-full"}[a.Loopback()]
	}
	encrypts := func(host string) bool { return !isFolder(host) && a.sslmode != "disable" }
	switch {
	case len(a.Hosts) == 0:
		// Read has said so.
	case (a.sslmode == "allow" || a.sslmode == "prefer") && !a.Loopback():
		errs = append(errs, errors.New("uri: sslmode=allow and sslmode=prefer go on without encryption if somebody in between says so: use verify-full, or disable to do without on purpose"))
	case !slices.ContainsFunc(a.Hosts, encrypts) && (a.sslrootcert+a.sslcert+a.sslkey != "" || a.channelBinding == "require"):
		errs = append(errs, errors.New("uri: sslrootcert, sslcert, sslkey and channel_binding=require need TLS, and there is none on a Unix socket, nor with sslmode=disable, the default for a host on this machine: leave them out, or give such a host sslmode=verify-full"))
	}
	return a, errors.Join(errs...)
}

// read is parseURI for what all stores read.
func read(uri string) (*sqldb.Address, error) {
	a, err := parseURI(uri)
	return &a.Address, err
}

// isFolder reports whether a host is the folder of a Unix socket.
func isFolder(host string) bool {
	return strings.HasPrefix(host, "/") && !strings.ContainsAny(host, ",\n\r'\\")
}

// parameter reads one, and says what is wrong with it.
func (a *address) parameter(name, value string) error {
	switch name {
	case "host":
		if len(a.Hosts) > 0 {
			return errors.New("is for a Unix socket, beside no other host")
		}
		a.Hosts, a.Ports = []string{value}, []string{form.Port}
		return sqldb.Must(isFolder(value), "the folder of a Unix socket: name other hosts before the path")
	case "sslmode":
		a.sslmode = value
		return sqldb.Must(sslmodes[value], "verify-full, verify-ca, require or disable")
	case "sslrootcert":
		return sqldb.File(&a.sslrootcert, value)
	case "sslcert":
		return sqldb.File(&a.sslcert, value)
	case "sslkey":
		return sqldb.File(&a.sslkey, value)
	case "channel_binding":
		a.channelBinding = value
		return sqldb.Must(value == "disable" || value == "prefer" || value == "require", "disable, prefer or require")
	case "target_session_attrs":
		return sqldb.Must(value == "read-write" || value == "primary", "read-write, as it is without: a ledger is used on the primary alone")
	}
	return a.Parameter(&form, name, value)
}

// Redact returns a URI that may be shown. Of one that Open accepts, the password is masked, and what stands in its
// place without a user; of any other no more than the scheme is shown.
func Redact(uri string) string { return form.Redact(uri, read) }
