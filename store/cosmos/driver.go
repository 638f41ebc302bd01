package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

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
			options, err := fromEnvironment(uri, getenv)
			if err != nil {
				return nil, fmt.Errorf("cosmos: open: %w", err)
			}
			options.Clock = o.Clock
			l, err := Open(ctx, options)
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		Redact:  Redact,
		Form:    "cosmos://ACCOUNT/DATABASE/CONTAINER",
		Secrets: []store.Secret{{Variable: KeyVariable}, {Variable: ConnectionVariable}},
	})
}

// Credentials reads the key or the connection string that goes with a URI from KeyVariable and ConnectionVariable, as
// [store.Open] does. A connection string names the account, so the URI is cosmos:///DATABASE/CONTAINER then. The error
// quotes neither.
func Credentials(uri string, getenv func(string) string) (key, connection string, err error) {
	// Mounted secrets end with a newline.
	key, connection = strings.TrimSpace(getenv(KeyVariable)), strings.TrimSpace(getenv(ConnectionVariable))
	nameless := strings.HasPrefix(uri, "cosmos:///")
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

// fromEnvironment are the options for a URI.
func fromEnvironment(uri string, getenv func(string) string) (Options, error) {
	key, connection, err := Credentials(uri, getenv)
	if err != nil {
		return Options{}, err
	}
	if connection == "" {
		return Options{URI: uri, Key: key}, nil
	}
	return besideConnection(uri, connection)
}

// besideConnection are the options for a connection string, and a URI that names no account.
func besideConnection(uri, connection string) (Options, error) {
	// Whether the rest is well-formed is seen with any account.
	with := strings.Replace(uri, "cosmos://", "cosmos://127.0.0.1:443", 1)
	a, wrong := parseURI(with)
	u, err := url.Parse(uri)
	const form = "the URI must be of the form cosmos:///DATABASE/CONTAINER?throughput=400"
	if wrong != nil {
		return Options{}, fmt.Errorf("%s: %w", form, wrong)
	}
	if err != nil || Redact(with) != with {
		return Options{}, errors.New(form)
	}
	q := u.Query()
	for name := range q {
		if !slices.Contains([]string{"throughput", "autoscale", "serverless", "serverSkew", "unsafeUnverifiedAccount"}, name) {
			return Options{}, fmt.Errorf("parameter %s goes with an account in the URI only", name)
		}
	}
	o := Options{ConnectionString: connection, Database: a.database, Container: a.container}
	// The form was checked before.
	o.Throughput, _ = strconv.Atoi(q.Get("throughput"))
	o.Autoscale, _ = strconv.Atoi(q.Get("autoscale"))
	o.Serverless, _ = strconv.ParseBool(q.Get("serverless"))
	o.ServerSkew, _ = time.ParseDuration(q.Get("serverSkew"))
	o.UnsafeUnverifiedAccount, _ = strconv.ParseBool(q.Get("unsafeUnverifiedAccount"))
	return o, nil
}
