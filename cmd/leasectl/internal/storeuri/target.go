package storeuri

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// Variable is the environment variable that names the store.
const Variable = "LEASECTL_STORE"

// SQLite is the scheme of files: they have a path, and commands of their own.
const SQLite = "sqlite"

// Target is a store that was named, and perhaps isn't open.
type Target struct {
	Scheme string
	// Shown is the store as it may be shown: without secrets.
	Shown string
	// InEnv is set if the environment names it, and no option does.
	InEnv bool
	// File is that of --store-file or LEASECTL_STORE_FILE, if one of these names it.
	File string
	// file is a SQLite one.
	file   sqlite.Options
	uri    string
	driver store.Driver
	// getenv is the environment from which the driver takes what the URI lacks.
	getenv func(string) string
}

// IsFile reports that the store is a SQLite file.
func (t Target) IsFile() bool { return t.Scheme == SQLite }

// Path is the absolute path of a SQLite file.
func (t Target) Path() string {
	if path, err := filepath.Abs(t.file.Path); err == nil {
		return path
	}
	return t.file.Path
}

// Relative reports that another working directory has another SQLite file of this name.
func (t Target) Relative() bool { return t.IsFile() && !filepath.IsAbs(t.file.Path) }

// HasSecret reports that what is shown of the store lacks a secret, so that it opens nothing.
func (t Target) HasSecret() bool { return !t.IsFile() && strings.Contains(t.Shown, scrub.Mask) }

// Place is the store as it may be shown, whatever the directory of the reader.
func (t Target) Place() string {
	if t.IsFile() {
		absolute := t.file
		absolute.Path = t.Path()
		return absolute.URI()
	}
	return t.Shown
}

// Environ is an environment for a command whose lease is in the store: without what
// opens the store. The URI may hold a password, and a key gives all rights to the
// account. Variables that other programs take, too, stay.
func (t Target) Environ(env []string) []string {
	hidden := []string{Variable, FileVariable}
	for _, s := range t.driver.Secrets {
		if !s.Shared {
			hidden = append(hidden, s.Variable)
		}
	}
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(hidden, name)
	})
}

// Secrets finds what may be secret in the environment: in the store's URI, and in
// the variables that hold the keys of stores.
func Secrets(getenv func(string) string) scrub.Secrets {
	found := secret.InURI(getenv(Variable))
	for _, scheme := range store.Schemes() {
		d, _ := store.DriverOf(scheme + ":")
		for _, s := range d.Secrets {
			hideValue(&found, strings.TrimSpace(getenv(s.Variable)))
		}
	}
	return found
}

// harmless are the parts of connection strings that aren't secret.
var harmless = []string{"accountendpoint", "accountname", "blobendpoint", "defaultendpointsprotocol", "disableservercertificatevalidation", "endpointsuffix"}

// hideValue hides a password or key; of a connection string, all that isn't known to be harmless; and of a token, its keys.
func hideValue(s *scrub.Secrets, value string) {
	s.Hide(value)
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ';' || r == '&' || r == '?' }) {
		name, key, ok := strings.Cut(part, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case ok && (scrub.IsSecret(name) || strings.HasSuffix(name, "key")):
			s.Hide(strings.TrimSpace(key))
		case strings.Contains(value, ";") && !slices.Contains(harmless, name):
			s.Hide(part)
			s.Hide(key)
		}
	}
}
