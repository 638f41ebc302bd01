package store

import (
	"context"
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
	if !ok {
		// The text may be a secret, so it isn't shown.
		return nil, fmt.Errorf("open a store: the URI has no scheme of those registered (%s): import the package of its store", strings.Join(Schemes(), ", "))
	}
	return d.Open(ctx, uri, o)
}

// Redact returns a URI as it may be shown, or *** if no driver of its scheme is registered.
func Redact(uri string) string {
	if d, ok := DriverOf(uri); ok {
		return d.Redact(uri)
	}
	return "***"
}
