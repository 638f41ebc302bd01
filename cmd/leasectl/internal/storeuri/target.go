package storeuri

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/internal/scrub"
)

// Variable is the environment variable that names the store.
const Variable = "LEASECTL_STORE"

// Forms are the forms in which a store is named.
const Forms = "sqlite:PATH, mongodb://…/DATABASE?collection=NAME, mongodb+srv://…, or cosmos://ACCOUNT/DATABASE/CONTAINER"

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
	// path of a SQLite file, and whether it may be on any file system.
	path             string
	unsafeFileSystem bool
	uri              string
	// key or connection string of a Cosmos DB account, if there is one.
	key, connection string
}

// The environment variables that hold the key of a Cosmos DB account. At most one
// may be set; with neither, azidentity's default credential is used.
const (
	KeyVariable        = "COSMOS_KEY"
	ConnectionVariable = "COSMOS_CONNECTION_STRING"
)

// Path is the absolute path of a SQLite file.
func (t Target) Path() string {
	if path, err := filepath.Abs(t.path); err == nil {
		return path
	}
	return t.path
}

// HasSecret reports that what is shown of the store lacks a secret, so that it opens nothing.
func (t Target) HasSecret() bool { return t.Scheme != SQLite && strings.Contains(t.Shown, scrub.Mask) }

// Place is the store as it may be shown, whatever the directory of the reader.
func (t Target) Place() string {
	if t.Scheme == SQLite {
		place := "sqlite:" + t.Path()
		if t.unsafeFileSystem {
			place += unsafeFileSystem
		}
		return place
	}
	return t.Shown
}

// KeyFrom is the variable that the key of a Cosmos DB account came from, or empty.
func (t Target) KeyFrom() string {
	switch {
	case t.connection != "":
		return ConnectionVariable
	case t.key != "":
		return KeyVariable
	}
	return ""
}

// Environ is an environment for a command whose lease is in the store: without what
// opens the store. The URI may hold a password, and a key gives all rights to the
// account.
func (t Target) Environ(env []string) []string {
	hidden := []string{Variable, FileVariable}
	if t.Scheme == Cosmos {
		hidden = append(hidden, KeyVariable, ConnectionVariable)
	}
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(hidden, name)
	})
}
