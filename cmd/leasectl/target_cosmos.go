package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
)

// The environment variables that hold the key of a Cosmos DB account. At most one
// may be set; with neither, azidentity's default credential is used.
const (
	keyVariable        = "COSMOS_KEY"
	connectionVariable = "COSMOS_CONNECTION_STRING"
)

// cosmosTarget completes a target in Cosmos DB by what the environment holds. Its
// errors quote nothing that could be secret; the URI's are told by open.
func (a *app) cosmosTarget(t target) (target, error) {
	// Mounted secrets end with a newline.
	t.key, t.connection = strings.TrimSpace(a.getenv(keyVariable)), strings.TrimSpace(a.getenv(connectionVariable))
	nameless := strings.HasPrefix(t.uri, "cosmos:///")
	_, parameters, _ := strings.Cut(t.uri, "?")
	switch {
	case t.key != "" && t.connection != "":
		return target{}, fmt.Errorf("cosmos: %s and %s are set: set only one", keyVariable, connectionVariable)
	case t.connection != "" && !nameless:
		return target{}, fmt.Errorf("cosmos: %s names the account: write cosmos:///DATABASE/CONTAINER, or set %s instead", connectionVariable, keyVariable)
	case t.key == "" && t.connection == "" && strings.Contains(parameters, "insecure"):
		return target{}, fmt.Errorf("cosmos: an emulator wants a key: set %s to it", keyVariable)
	case t.connection == "" && nameless:
		return target{}, fmt.Errorf("cosmos: has no account: write cosmos://ACCOUNT/DATABASE/CONTAINER, or set %s", connectionVariable)
	}
	if t.connection != "" {
		// Whether the rest is well-formed can be seen with any account.
		t.shown = "cosmos://***"
		if with := strings.Replace(t.uri, "cosmos://", "cosmos://127.0.0.1:443", 1); cosmos.Redact(with) == with {
			t.shown = t.uri
		}
	}
	return t, nil
}

// keyFrom is the variable that the key came from.
func (t target) keyFrom() string {
	if t.connection != "" {
		return connectionVariable
	}
	return keyVariable
}

// openCosmos makes a ledger in Cosmos DB.
func (t target) openCosmos(ctx context.Context) (store.Ledger, error) {
	o := cosmos.Options{URI: t.uri, Key: t.key}
	if t.connection != "" {
		var err error
		if o, err = t.connectionOptions(); err != nil {
			return nil, badUsage("", err)
		}
	}
	l, err := cosmos.Open(ctx, o)
	if err != nil {
		return nil, badUsage("", err)
	}
	return l, nil
}

// connectionOptions are the options for a connection string, and a URI that names
// no account.
func (t target) connectionOptions() (cosmos.Options, error) {
	u, err := url.Parse(t.shown)
	if err != nil || t.shown != t.uri {
		return cosmos.Options{}, errors.New("cosmos: the URI must be of the form cosmos:///DATABASE/CONTAINER?throughput=400")
	}
	q := u.Query()
	for name := range q {
		if !slices.Contains([]string{"throughput", "autoscale", "serverless"}, name) {
			return cosmos.Options{}, fmt.Errorf("cosmos: parameter %s goes with an account in the URI only", name)
		}
	}
	o := cosmos.Options{ConnectionString: t.connection}
	o.Database, o.Container, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
	// The form was checked before.
	o.Throughput, _ = strconv.Atoi(q.Get("throughput"))
	o.Autoscale, _ = strconv.Atoi(q.Get("autoscale"))
	o.Serverless, _ = strconv.ParseBool(q.Get("serverless"))
	return o, nil
}

// provision is what a container that init makes is given, in words.
func (t target) provision() string {
	u, err := url.Parse(t.shown)
	if err != nil || t.scheme != "cosmos" {
		return ""
	}
	q := u.Query()
	serverless, _ := strconv.ParseBool(q.Get("serverless"))
	switch {
	case serverless:
		return " (serverless)"
	case q.Get("autoscale") != "":
		return " (autoscale, at most " + q.Get("autoscale") + " RU/s)"
	}
	return " (" + cmp.Or(q.Get("throughput"), strconv.Itoa(cosmos.DefaultThroughput)) + " RU/s)"
}

// warning is what is wrong with the account behind a ledger that was used, or
// nothing.
func warning(l store.Ledger) string {
	if c, ok := l.(interface{ Account() cosmos.Account }); ok {
		return c.Account().Warning()
	}
	return ""
}

// withoutKeys is the environment of a command whose lease is in Cosmos DB: a key
// gives all rights to the account.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == keyVariable || name == connectionVariable
	})
}

// keysIn finds the secrets in the variables that hold those of Azure.
func (a *app) keysIn() (found secrets) {
	for _, name := range []string{keyVariable, "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD"} {
		found.add(strings.TrimSpace(a.getenv(name)))
	}
	// Of a connection string, all that isn't known to be harmless.
	for part := range strings.SplitSeq(a.getenv(connectionVariable), ";") {
		name, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "accountendpoint", "disableservercertificatevalidation":
		case "accountkey":
			found.add(strings.TrimSpace(value))
		default:
			found.add(part)
			found.add(value)
		}
	}
	return found
}
