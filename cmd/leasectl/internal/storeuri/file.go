package storeuri

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
)

// FileVariable is the environment variable that names a file with the store's URI.
const FileVariable = "LEASECTL_STORE_FILE"

// ReadFile reads a store's URI from a file, as [secret.ReadFile] does.
func ReadFile(ctx context.Context, path string) (uri string, err error) {
	return secret.ReadFile(ctx, path, "the URI of the store")
}

// ParseFile is [Parse] for what ReadFile has read. What is malformed may be a secret as a whole, so
// the error says nothing of it.
func ParseFile(uri string, getenv func(string) string) (Target, error) {
	t, err := Parse(uri, getenv)
	if _, absent := errors.AsType[*AbsentError](err); absent {
		return Target{}, err
	}
	if mistake, ok := errors.AsType[*formError](err); ok {
		return Target{}, fmt.Errorf("its content %w", mistake)
	}
	if err != nil {
		return Target{}, errors.New("its content names no store: it must be one of " + Forms())
	}
	return t, nil
}
