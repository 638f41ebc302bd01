package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/benbjohnson/clock"
)

// OpenOptions of Open. The zero value is ready for use.
type OpenOptions struct {
	// ReadOnly opens the store for people who look: it creates nothing, where a store can do without.
	ReadOnly bool
	// AppName names the program to servers that take such a name. Default: slotlease.
	AppName string
	// Clock measures what a store waits for. It doesn't measure leases. Default: the real clock.
	Clock clock.Clock
	// File has the URI, too, in one line, whose user and password may be others by then: SQL stores, Redis and NATS read it again for
	// each new connection. Default: none.
	File string
	// Getenv reads an environment variable, for the keys of cloud services. Default: os.Getenv.
	Getenv func(name string) string
}

// Driver opens the stores of one scheme.
type Driver struct {
	// Open makes a ledger of a URI with that scheme. It reports all that is wrong with the URI at once, without any
	// secret in it.
	Open func(ctx context.Context, uri string, o OpenOptions) (Ledger, error)
	// Redact returns the URI as it may be shown: with *** in place of what is secret, or may be.
	Redact func(uri string) string
	// Form shows how a URI looks, in messages and help: postgres://HOST/DATABASE.
	Form string
	// Secrets are the environment variables from which Open takes passwords and keys. Programs such as leasectl hide
	// their values in all that they show.
	Secrets []Secret
	// Checks are the checks that Examine of the ledgers makes under names which this package doesn't have, for the help
	// of leasectl doctor.
	Checks []Check
	// Billed says that the service charges for each request, so that leasectl run keeps a roster there only if it is asked to:
	// of many workers that write one presence every few minutes it would be half of the cost.
	Billed bool
}

// Secret is an environment variable with a password or a key.
type Secret struct {
	Variable string
	// Shared is set if other programs take the variable, too, so that leasectl passes it on to the commands that it runs.
	// They don't get those of the store alone.
	Shared bool
}

// Check is one kind of finding.
type Check struct {
	Name string // that of Finding.Check
	// Asks is what it finds out, as a short question.
	Asks string
}

var registry = struct {
	sync.Mutex
	drivers map[string]Driver
}{drivers: map[string]Driver{}}

// Register makes a driver known under a scheme, such as postgres. Packages of stores call it when they are
// initialised, so that an application chooses a store by its configuration: it imports the packages of those that it
// allows, if only for that, and calls Open. It panics if the scheme is taken.
func Register(scheme string, d Driver) {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.drivers[scheme]; taken || d.Open == nil || d.Redact == nil {
		panic(fmt.Sprintf("store: Register(%q): taken, or without Open or Redact", scheme))
	}
	registry.drivers[scheme] = d
}

// Schemes lists the schemes that are registered, in byte order.
func Schemes() []string {
	registry.Lock()
	defer registry.Unlock()
	var names []string
	for name := range registry.drivers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// DriverOf returns the driver of a URI's scheme, or false if none is registered.
func DriverOf(uri string) (Driver, bool) {
	scheme, _, ok := strings.Cut(uri, ":")
	if !ok {
		return Driver{}, false
	}
	registry.Lock()
	defer registry.Unlock()
	d, ok := registry.drivers[scheme]
	return d, ok
}

// Open makes a ledger of a URI, by the driver of its scheme. The caller closes it.
func Open(ctx context.Context, uri string, o OpenOptions) (Ledger, error) {
	d, ok := DriverOf(uri)
	if err := CheckURI(uri); !ok && err != nil {
		return nil, fmt.Errorf("open a store: the URI %w", err)
	}
	if !ok {
		// The text may be a secret, so it isn't shown.
		return nil, fmt.Errorf("open a store: the URI has no scheme of those registered (%s): import the package of its store", strings.Join(Schemes(), ", "))
	}
	return d.Open(ctx, uri, o)
}

// CheckURI returns an error for a text that can't be a URI, and could be one but for a slip of the hand: a
// blank before it, a line end after it, quotes around it, or capitals in its scheme, of those registered or others. The error
// follows the name of where the text came from, and shows nothing of it.
func CheckURI(text string, others ...string) error {
	scheme, rest, _ := strings.Cut(text, ":")
	small := strings.ToLower(scheme)
	switch {
	case text == "":
		return nil
	case strings.TrimRight(text, "\r\n") != text: // Of a file with CRLF, or of echo.
		return errors.New("ends with a line end: leave it out")
	case strings.TrimSpace(text[:1]) == "", strings.HasPrefix(rest, "//") && strings.TrimSpace(text) != text:
		// One after it may be the end of a file's name.
		return errors.New("begins or ends with a blank: leave it out")
	case strings.ContainsAny(text[:1], "\"'`"), strings.HasPrefix(text, "“"):
		return errors.New("is in quotes: leave them out")
	case small != scheme && slices.Contains(append(others, Schemes()...), small):
		return fmt.Errorf("has its scheme in capitals: write it as %s", small)
	}
	return nil
}

// Redact returns a URI as it may be shown, or *** if no driver of its scheme is registered.
func Redact(uri string) string {
	if d, ok := DriverOf(uri); ok {
		return d.Redact(uri)
	}
	return "***"
}
