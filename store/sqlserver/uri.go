//go:build sqlserver

package sqlserver

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
	schema, table string
	// instance is the named instance whose port SQL Server Browser is asked for, in place of a port.
	instance string
	// encrypt is one of the constants below; trust says that the server's certificate isn't verified, ca is the file of
	// its authorities, and certificateName its name if that isn't the host's.
	encrypt         string
	trust           bool
	ca              string
	certificateName string
	appName         string
	connectTimeout  time.Duration
	// skew is Options.ServerSkew, or zero, and maxConns Options.MaxConns.
	skew     time.Duration
	maxConns int
}

// form is that of the URIs.
var form = storekit.URIForm{Schemes: []string{"sqlserver"}, Port: "1433", Socket: "instance=NAME", Reserved: "[]", MostName: 128 * 4}

const (
	// mostConns bounds maxConns, and mostTimeout connectTimeout.
	mostConns   = 1000
	mostTimeout = time.Minute
)

// The values of encrypt.
const (
	encryptStrict = "strict" // TLS before anything else is said: TDS 8.0, of SQL Server 2022 and of Azure
	encryptYes    = "true"
	encryptNo     = "false"
)

var (
	// tableName and schemaName are names that look the same in SQL, URIs and shells. Seven bytes are left for the roster's.
	tableName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	// instanceName is that of a named instance: https://learn.microsoft.com/sql/sql-server/install/instance-configuration
	instanceName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,15}$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9*]([A-Za-z0-9.-]{0,252})$`)
)

// parseURI takes a URI apart. Its error has all faults, a line each. It quotes no part of the URI but the names of
// parameters that look like names: anything else may be half a password.
func parseURI(uri string) (address, error) {
	var a address
	errs := a.Read(uri, form, a.parameter)
	if a.encrypt == "" {
		a.encrypt = encryptYes
	}
	bad := func(text string) { errs = append(errs, errors.New("uri: "+text)) }
	if a.instance != "" && (len(a.Hosts) != 1 || a.Ports[0] != form.Port) {
		bad("instance is for one host without a port, which SQL Server Browser is asked for")
	}
	if a.trust && (a.encrypt == encryptStrict || a.ca != "" || a.certificateName != "") {
		bad("trustServerCertificate verifies nothing: leave out encrypt=strict, tlsCA and hostNameInCertificate, or it")
	}
	if a.encrypt == encryptNo && (a.trust || a.ca != "" || a.certificateName != "") {
		bad("tlsCA, hostNameInCertificate and trustServerCertificate are for encrypt=true")
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
	var err error
	switch name {
	case "schema":
		a.schema = value
		return must(schemaName.MatchString(value), "a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 100")
	case "table":
		a.table = value
		return must(tableName.MatchString(value), "a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 100")
	case "instance":
		a.instance = value
		return must(instanceName.MatchString(value), "the name of an instance, of A-Z a-z 0-9 _ $, at most 16")
	case "encrypt":
		a.encrypt = value
		return must(value == encryptStrict || value == encryptYes || value == encryptNo, "strict, true or false")
	case "trustServerCertificate":
		a.trust = value == "true"
		return must(value == "true" || value == "false", "true or false")
	case "tlsCA":
		a.ca = value
		return must(!strings.ContainsAny(value, "\n\r"), "the path of a file")
	case "hostNameInCertificate":
		a.certificateName = value
		return must(hostName.MatchString(value), "the name of a host")
	case "appName":
		a.appName = value
		return must(isAppName(value), "1 to 63 printable ASCII characters")
	case "connectTimeout":
		a.connectTimeout, err = time.ParseDuration(value)
		return must(err == nil && a.connectTimeout > 0 && a.connectTimeout <= mostTimeout, "a duration above 0, at most 1m0s, such as 3s")
	case "applicationIntent":
		return must(strings.EqualFold(value, "ReadWrite"), "ReadWrite, as it is without: a readable secondary lags, so that no ledger is read there")
	case "serverSkew":
		a.skew, err = storekit.SkewOf(value)
		return err
	case "maxConns":
		a.maxConns, err = strconv.Atoi(value)
		return must(err == nil && a.maxConns > 0 && a.maxConns <= mostConns, "a number from 1 to 1000")
	}
	return errors.New("is unknown: use schema, table, instance, encrypt, trustServerCertificate, tlsCA, hostNameInCertificate, connectTimeout, appName, serverSkew or maxConns; give a password before the host, or in SQLCMDPASSWORD")
}

// isAppName reports whether a server takes a name of a program as it is.
func isAppName(name string) bool {
	return name != "" && len(name) <= 63 && strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// place is where the hosts are, for people.
func (a *address) place() string {
	if a.instance != "" {
		return a.Hosts[0] + `\` + a.instance
	}
	return a.Place(form)
}

// Redact returns a URI that may be shown. Of one that Open accepts, the password is masked, and what stands in its
// place without a user; of any other no more than the scheme is shown.
func Redact(uri string) string {
	a, err := parseURI(uri)
	return a.Redact(uri, form, err)
}
