//go:build sqlserver

package sqlserver

import (
	"errors"
	"regexp"
	"strings"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI.
type address struct {
	sqldb.Address
	// instance is the named instance whose port SQL Server Browser is asked for, in place of a port.
	instance string
	// encrypt is one of the constants below; trust says that the server's certificate isn't verified, ca is the file of
	// its authorities, and certificateName its name if that isn't the host's.
	encrypt         string
	trust           bool
	ca              string
	certificateName string
}

// form is that of the URIs.
var form = sqldb.Form{
	URIForm: storekit.URIForm{Schemes: []string{"sqlserver"}, Port: "1433", Socket: "instance=NAME", Reserved: "[]", MostName: 128 * 4},
	Store:   "sqlserver", Schema: DefaultSchema, MostSchema: 100, MostTable: 100, AppName: "appName", Timeout: "connectTimeout",
	Variable: "SQLCMDPASSWORD", // that of sqlcmd
	Unknown:  "is unknown: use schema, table, instance, encrypt, trustServerCertificate, tlsCA, hostNameInCertificate, connectTimeout, appName, serverSkew or maxConns; give a password before the host, or in SQLCMDPASSWORD",
}

// The values of encrypt.
const (
	encryptStrict = "strict" // TLS before anything else is said: TDS 8.0, of SQL Server 2022 and of Azure
	encryptYes    = "true"
	encryptNo     = "false"
)

var (
	// instanceName is that of a named instance: https://learn.microsoft.com/sql/sql-server/install/instance-configuration
	instanceName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,15}$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9*]([A-Za-z0-9.-]{0,252})$`)
)

// parseURI takes a URI apart. Its error has all faults, a line each. It quotes no part of the URI but the names of
// parameters that look like names: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	errs := a.Read(uri, form.URIForm, a.parameter)
	if a.encrypt == "" {
		a.encrypt = encryptYes
	}
	bad := func(text string) { errs = append(errs, errors.New("uri: "+text)) }
	if a.instance != "" && (len(a.Hosts) != 1 || a.Ports[0] != form.Port) {
		bad("instance is for one host without a port, which SQL Server Browser is asked for")
	} else if a.instance != "" {
		a.At = a.Hosts[0] + `\` + a.instance
	}
	if a.trust && (a.encrypt == encryptStrict || a.ca != "" || a.certificateName != "") {
		bad("trustServerCertificate verifies nothing: leave out encrypt=strict, tlsCA and hostNameInCertificate, or it")
	}
	if a.encrypt == encryptNo && (a.trust || a.ca != "" || a.certificateName != "") {
		bad("tlsCA, hostNameInCertificate and trustServerCertificate are for encrypt=true")
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
	case "instance":
		a.instance = value
		return sqldb.Must(instanceName.MatchString(value), "the name of an instance, of A-Z a-z 0-9 _ $, at most 16")
	case "encrypt":
		a.encrypt = value
		return sqldb.Must(value == encryptStrict || value == encryptYes || value == encryptNo, "strict, true or false")
	case "trustServerCertificate":
		a.trust = value == "true"
		return sqldb.Must(value == "true" || value == "false", "true or false")
	case "tlsCA":
		return sqldb.File(&a.ca, value)
	case "hostNameInCertificate":
		a.certificateName = value
		return sqldb.Must(hostName.MatchString(value), "the name of a host")
	case "applicationIntent":
		return sqldb.Must(strings.EqualFold(value, "ReadWrite"), "ReadWrite, as it is without: a readable secondary lags, so that no ledger is read there")
	}
	return a.Parameter(&form, name, value)
}

// Redact returns a URI that may be shown. Of one that Open accepts, the password is masked, and what stands in its
// place without a user; of any other no more than the scheme is shown.
func Redact(uri string) string { return form.Redact(uri, read) }
