package mysql

import (
	"errors"
	"strings"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI.
type address struct {
	sqldb.Address
	tls           string
	ca, cert, key string
}

// form is that of the URIs.
var form = sqldb.Form{
	URIForm: storekit.URIForm{Schemes: []string{"mysql", "mariadb"}, Port: "3306", Socket: "socket=/PATH", Reserved: "\\.`", MostName: 64 * 4},
	Store:   "mysql", MostTable: 57, AppName: "appName", Timeout: "connectTimeout",
	Separators: ",:", // The driver separates by them.
	Variable:   "MYSQL_PWD",
	Unknown:    "is unknown: use table, tls, tlsCA, tlsCert, tlsKey, connectTimeout, appName, socket, serverSkew or maxConns; give a password before the host, or in MYSQL_PWD",
}

// The values of tls.
const (
	tlsVerify = "true"
	tlsSkip   = "skip-verify"
	tlsOff    = "false"
)

// isDatabase reports whether Options.Database can stand in a statement.
func isDatabase(name string) bool {
	return name != "" && len(name) <= form.MostName && !strings.ContainsAny(name, "/"+form.Reserved)
}

// parseURI takes a URI apart. Its error has all faults, a line each. It quotes no part of the URI but the names of
// parameters that look like names: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	errs := a.Read(uri, form.URIForm, a.parameter)
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

// read is parseURI for what all stores read.
func read(uri string) (*sqldb.Address, error) {
	a, err := parseURI(uri)
	return &a.Address, err
}

// parameter reads one, and says what is wrong with it.
func (a *address) parameter(name, value string) error {
	switch name {
	case "socket":
		if len(a.Hosts) > 0 {
			return errors.New("is for a Unix socket, beside no host")
		}
		a.Socket = value
		return sqldb.Must(strings.HasPrefix(value, "/") && !strings.ContainsAny(value, "\n\r"), "the path of a Unix socket")
	case "tls":
		a.tls = value
		return sqldb.Must(value == tlsVerify || value == tlsSkip || value == tlsOff, "true, skip-verify or false")
	case "tlsCA":
		return sqldb.File(&a.ca, value)
	case "tlsCert":
		return sqldb.File(&a.cert, value)
	case "tlsKey":
		return sqldb.File(&a.key, value)
	}
	return a.Parameter(&form, name, value)
}

// Redact returns a URI that may be shown. Of one that Open accepts, the password is masked, and what stands in its
// place without a user; of any other no more than the scheme is shown.
func Redact(uri string) string { return form.Redact(uri, read) }
