package cosmos

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// The environment variables that hold the key of an account, for [store.Open]. At most one may be set; with neither,
// azidentity's default credential is used.
const (
	KeyVariable        = "COSMOS_KEY"
	ConnectionVariable = "COSMOS_CONNECTION_STRING"
)

func init() {
	store.Register("cosmos", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			getenv := o.Getenv
			if getenv == nil {
				getenv = os.Getenv
			}
			key, connection, err := Credentials(uri, getenv)
			if err != nil {
				return nil, fmt.Errorf("cosmos: open: %w", err)
			}
			l, err := Open(ctx, Options{URI: uri, Key: key, ConnectionString: connection, Clock: o.Clock})
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		Redact: Redact,
		Form:   "cosmos://ACCOUNT/DATABASE/CONTAINER",
		Secrets: []store.Secret{
			{Variable: KeyVariable},
			{Variable: ConnectionVariable},
			{Variable: "AZURE_CLIENT_SECRET", Shared: true},
			{Variable: "AZURE_CLIENT_CERTIFICATE_PASSWORD", Shared: true},
			{Variable: "AZURE_PASSWORD", Shared: true},
		},
	})
}

// Credentials reads the key or the connection string that goes with a URI from KeyVariable and ConnectionVariable, as
// [store.Open] does. A connection string names the account, so the URI is cosmos:///DATABASE/CONTAINER then. The error
// quotes neither.
func Credentials(uri string, getenv func(string) string) (key, connection string, err error) {
	// Mounted secrets end with a newline.
	key, connection = strings.TrimSpace(getenv(KeyVariable)), strings.TrimSpace(getenv(ConnectionVariable))
	nameless := nameless(uri)
	_, parameters, _ := strings.Cut(uri, "?")
	switch {
	case key != "" && connection != "":
		err = fmt.Errorf("%s and %s are set: set only one", KeyVariable, ConnectionVariable)
	case connection != "" && !nameless:
		err = fmt.Errorf("%s names the account: write cosmos:///DATABASE/CONTAINER, or set %s instead", ConnectionVariable, KeyVariable)
	case key == "" && connection == "" && strings.Contains(parameters, "insecure"):
		err = fmt.Errorf("an emulator wants a key: set %s to it", KeyVariable)
	case connection == "" && nameless:
		err = fmt.Errorf("has no account: write cosmos://ACCOUNT/DATABASE/CONTAINER, or set %s", ConnectionVariable)
	}
	if err != nil {
		return "", "", err
	}
	return key, connection, nil
}
