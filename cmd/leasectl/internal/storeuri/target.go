package storeuri

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/sqlite"
)

// Variable is the environment variable that names the store.
const Variable = "LEASECTL_STORE"

// The schemes of the stores. A Target's is one of these, or mongodb+srv.
const (
	SQLite  = "sqlite"
	MongoDB = "mongodb"
	Cosmos  = "cosmos"
)

// Target is a store that was named, and perhaps isn't open.
type Target struct {
	Scheme string
	// Shown is the store as it may be shown: without secrets.
	Shown string
	// InEnv is set if the environment names it, and no option does.
	InEnv bool
	// File is that of --store-file, if this names it.
	File string
	// file is a SQLite one.
	file sqlite.Options
	uri  string
	// driver of a store that is registered, and the environment from which it takes what the URI lacks.
	driver store.Driver
	getenv func(string) string
	// key or connection string of a Cosmos DB account, if there is one.
	key, connection string
}

// Path is the absolute path of a SQLite file.
func (t Target) Path() string {
	if path, err := filepath.Abs(t.file.Path); err == nil {
		return path
	}
	return t.file.Path
}

// HasSecret reports that what is shown of the store lacks a secret, so that it opens nothing.
func (t Target) HasSecret() bool { return t.Scheme != SQLite && strings.Contains(t.Shown, scrub.Mask) }

// Place is the store as it may be shown, whatever the directory of the reader.
func (t Target) Place() string {
	if t.Scheme == SQLite {
		absolute := t.file
		absolute.Path = t.Path()
		return absolute.URI()
	}
	return t.Shown
}

// KeyFrom is the variable that the key of a Cosmos DB account came from, or empty.
func (t Target) KeyFrom() string {
	switch {
	case t.connection != "":
		return cosmos.ConnectionVariable
	case t.key != "":
		return cosmos.KeyVariable
	}
	return ""
}

// Environ is an environment for a command whose lease is in the store: without what
// opens the store. The URI may hold a password, and a key gives all rights to the
// account. Variables that other programs take, too, stay.
func (t Target) Environ(env []string) []string {
	hidden := []string{Variable, FileVariable}
	if t.Scheme == Cosmos {
		hidden = append(hidden, cosmos.KeyVariable, cosmos.ConnectionVariable)
	}
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
