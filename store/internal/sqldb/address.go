package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// RosterSuffix makes the name of the roster's table.
	RosterSuffix = "_roster"
	// DefaultSkew is how far the clocks of several servers are assumed to be apart.
	DefaultSkew = 100 * time.Millisecond

	defaultTable          = "worker_leases"
	defaultAppName        = "slotlease"
	defaultConns          = 4
	defaultConnectTimeout = 3 * time.Second
	mostConns             = 1000
	mostTimeout           = time.Minute
	mostAppName           = 63
)

// Form is the form of a store's URIs, and of the names in them.
type Form struct {
	storekit.URIForm
	// Store is the store's name, with which its errors begin.
	Store string
	// Schema is that of the tables, unless another is given. Where it is empty, the database is the schema.
	Schema string
	// MostSchema and MostTable bound their names, in bytes. Seven bytes are left for the roster's.
	MostSchema, MostTable int
	// AppName and Timeout are the names of parameters. The second has whole seconds, if Seconds is set.
	AppName, Timeout string
	Seconds          bool
	// Separators are characters that the name of no program has.
	Separators string
	// Variable of the environment has the password.
	Variable string
	// Unknown is what is wrong with a parameter that isn't known.
	Unknown string
}

// Options are what the Options of the stores have in common. Lent says that the application lends its pool.
type Options struct {
	URI          string
	Password     string
	PasswordFunc func(ctx context.Context) (string, error)
	Lent         bool
	Schema       string
	Table        string
	ServerSkew   time.Duration
	MaxConns     int
	AppName      string
	Clock        clock.Clock
}

// Address is a parsed URI, completed by Options.
type Address struct {
	storekit.DatabaseURI
	Schema, Table  string
	AppName        string
	ConnectTimeout time.Duration
	Skew           time.Duration
	MaxConns       int
	// At is where the server is, for people, if the hosts don't say it all.
	At string
}

// Must says that a value must be something, unless it is.
func Must(ok bool, what string) error {
	if ok {
		return nil
	}
	return errors.New("must be " + what)
}

// File takes the path of a file.
func File(to *string, value string) error {
	*to = value
	return Must(!strings.ContainsAny(value, "\n\r"), "the path of a file")
}

// plainName is a name that looks the same in SQL, URIs and shells.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func isName(text string, most int) bool { return len(text) <= most && plainName.MatchString(text) }

func nameOf(most int) string {
	return fmt.Sprintf("a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most %d", most)
}

// isAppName reports whether a server takes a name of a program as it is.
func (f *Form) isAppName(name string) bool {
	odd := func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(f.Separators, c) }
	return name != "" && len(name) <= mostAppName && strings.IndexFunc(name, odd) < 0
}

func (f *Form) appName() string {
	text := fmt.Sprintf("1 to %d printable ASCII characters", mostAppName)
	if f.Separators != "" {
		text += " without " + strings.Join(strings.Split(f.Separators, ""), " and ")
	}
	return text
}

// Parameter reads one that several stores have, and says what is wrong with it.
func (a *Address) Parameter(f *Form, name, value string) (err error) {
	switch {
	case name == "schema" && f.Schema != "":
		a.Schema = value
		return Must(isName(value, f.MostSchema), nameOf(f.MostSchema))
	case name == "table":
		a.Table = value
		return Must(isName(value, f.MostTable), nameOf(f.MostTable))
	case name == f.AppName:
		a.AppName = value
		return Must(f.isAppName(value), f.appName())
	case name == f.Timeout && f.Seconds:
		var n int
		n, err = strconv.Atoi(value)
		a.ConnectTimeout = time.Duration(n) * time.Second
		return Must(err == nil && n > 0 && n <= int(mostTimeout/time.Second), "whole seconds, from 1 to 60")
	case name == f.Timeout:
		a.ConnectTimeout, err = time.ParseDuration(value)
		return Must(err == nil && a.ConnectTimeout > 0 && a.ConnectTimeout <= mostTimeout, "a duration above 0, at most 1m0s, such as 3s")
	case name == "serverSkew":
		a.Skew, err = storekit.SkewOf(value)
		return err
	case name == "maxConns":
		a.MaxConns, err = strconv.Atoi(value)
		return Must(err == nil && a.MaxConns > 0 && a.MaxConns <= mostConns, fmt.Sprintf("a number from 1 to %d", mostConns))
	}
	return errors.New(f.Unknown)
}

// complete takes in the options, and returns all that is wrong with them.
func (a *Address) complete(f *Form, o Options) (faults []error) {
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("options: "+format, args...))
		}
	}
	pick := func(name string, own, fromURI, otherwise string) string {
		bad(own == "" || fromURI == "" || own == fromURI, "%s is given in the URI and in Options, and differs: give one", name)
		return cmp.Or(own, fromURI, otherwise)
	}
	if f.Schema != "" {
		a.Schema = pick("schema", o.Schema, a.Schema, f.Schema)
		bad(isName(a.Schema, f.MostSchema), "Schema must be %s", nameOf(f.MostSchema))
	}
	a.Table = pick("table", o.Table, a.Table, defaultTable)
	bad(isName(a.Table, f.MostTable), "Table must be %s", nameOf(f.MostTable))
	a.AppName = cmp.Or(o.AppName, a.AppName, defaultAppName)
	bad(f.isAppName(a.AppName), "AppName must have %s", f.appName())
	bad(o.ServerSkew >= 0 && o.ServerSkew <= storekit.MostSkew, "ServerSkew %v must be from 0 to %v", o.ServerSkew, storekit.MostSkew)
	bad(o.ServerSkew == 0 || a.Skew == 0 || o.ServerSkew == a.Skew,
		"serverSkew %v in the URI and %v in Options: give one", a.Skew, o.ServerSkew)
	a.Skew = cmp.Or(o.ServerSkew, a.Skew)
	bad(o.MaxConns >= 0 && o.MaxConns <= mostConns, "MaxConns %d must be from 1 to %d, or 0 for the default", o.MaxConns, mostConns)
	a.MaxConns = cmp.Or(o.MaxConns, a.MaxConns, defaultConns)
	a.ConnectTimeout = cmp.Or(a.ConnectTimeout, defaultConnectTimeout)
	bad(o.PasswordFunc == nil || o.Password == "" && a.Password == "", "PasswordFunc and a password are both given: give one")
	a.Password = pick("a password", o.Password, a.Password, "")
	bad(!o.Lent || o.URI == "" && o.Password == "" && o.PasswordFunc == nil && o.AppName == "",
		"URI, Password, PasswordFunc and AppName are for connections of the ledger's own: leave them out, the application's pool has its own")
	return faults
}

// Place is where the servers are, for people.
func (a *Address) Place(f *Form) string {
	return cmp.Or(a.At, a.DatabaseURI.Place(f.URIForm), "the application's pool")
}

// Name is that of a table, with its schema, for people.
func (a *Address) Name(table string) string { return cmp.Or(a.Schema, a.Database) + "." + table }

// Redact returns a URI that may be shown, which read takes apart. Of one that is well formed, the password is masked, and what stands
// in its place without a user; of any other no more than the scheme is shown.
func (f *Form) Redact(uri string, read func(uri string) (*Address, error)) string {
	a, err := read(uri)
	return a.Redact(uri, f.URIForm, err)
}

// Register makes a store known by its schemes.
func Register[L interface {
	store.Ledger
	follow(logins *storekit.Renewed[*Address])
}](
	f *Form, read func(uri string) (*Address, error),
	open func(ctx context.Context, uri, password string, o store.OpenOptions) (L, error),
) {
	for _, name := range f.Schemes {
		store.Register(name, store.Driver{
			Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
				getenv, password := o.Getenv, ""
				if getenv == nil {
					getenv = os.Getenv
				}
				if a, err := read(uri); err == nil && a.Password == "" {
					password = getenv(f.Variable)
				}
				l, err := open(ctx, uri, password, o)
				if err != nil {
					return nil, err
				}
				logins, err := storekit.RenewedURI(o.File, uri, read)
				l.follow(logins)
				return l, err
			},
			Redact:  func(uri string) string { return f.Redact(uri, read) },
			Form:    name + "://HOST/DATABASE",
			Secrets: []store.Secret{{Variable: f.Variable, Shared: true}},
		})
	}
}
