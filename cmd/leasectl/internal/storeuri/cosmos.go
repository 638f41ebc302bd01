package storeuri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
)

// cosmosTarget completes a target in Cosmos DB from the environment. Its errors
// quote nothing that could be secret; Open reports those of the URI.
func cosmosTarget(t Target, getenv func(string) string) (Target, error) {
	// Mounted secrets end with a newline.
	t.key, t.connection = strings.TrimSpace(getenv(KeyVariable)), strings.TrimSpace(getenv(ConnectionVariable))
	nameless := strings.HasPrefix(t.uri, "cosmos:///")
	_, parameters, _ := strings.Cut(t.uri, "?")
	switch {
	case t.key != "" && t.connection != "":
		return Target{}, fmt.Errorf("cosmos: %s and %s are set: set only one", KeyVariable, ConnectionVariable)
	case t.connection != "" && !nameless:
		return Target{}, fmt.Errorf("cosmos: %s names the account: write cosmos:///DATABASE/CONTAINER, or set %s instead", ConnectionVariable, KeyVariable)
	case t.key == "" && t.connection == "" && strings.Contains(parameters, "insecure"):
		return Target{}, fmt.Errorf("cosmos: an emulator wants a key: set %s to it", KeyVariable)
	case t.connection == "" && nameless:
		return Target{}, fmt.Errorf("cosmos: has no account: write cosmos://ACCOUNT/DATABASE/CONTAINER, or set %s", ConnectionVariable)
	}
	if t.connection != "" {
		t.Shown = "cosmos://***"
		if with := withAccount(t.uri); cosmos.Redact(with) == with {
			t.Shown = t.uri
		}
	}
	return t, nil
}

// withAccount is a URI that names no account with any one: whether the rest is well-formed
// can then be seen.
func withAccount(uri string) string {
	return strings.Replace(uri, "cosmos://", "cosmos://127.0.0.1:443", 1)
}

// whyUnfit says what is wrong with a URI that names no account.
func whyUnfit(uri string) string {
	l, err := cosmos.Open(context.Background(), cosmos.Options{URI: withAccount(uri), Key: "YQ=="})
	if err != nil {
		return ": " + err.Error()
	}
	_ = l.Close(context.Background())
	return ""
}

// openCosmos makes a ledger in Cosmos DB.
func (t Target) openCosmos(ctx context.Context) (store.Ledger, error) {
	o := cosmos.Options{URI: t.uri, Key: t.key}
	if t.connection != "" {
		var err error
		if o, err = t.connectionOptions(); err != nil {
			return nil, exit.BadUsage("check "+ConnectionVariable, err)
		}
	}
	l, err := cosmos.Open(ctx, o)
	if err != nil {
		form := ""
		if strings.Contains(err.Error(), "open: uri: ") { // A key isn't part of it.
			form = "cosmos://ACCOUNT/DATABASE/CONTAINER, as in leasectl --help"
		}
		return nil, exit.BadUsage(form, err)
	}
	return l, nil
}

// connectionOptions are the options for a connection string, and a URI that names
// no account.
func (t Target) connectionOptions() (cosmos.Options, error) {
	u, err := url.Parse(t.Shown)
	if err != nil || t.Shown != t.uri {
		return cosmos.Options{}, errors.New("cosmos: the URI must be of the form cosmos:///DATABASE/CONTAINER?throughput=400" + whyUnfit(t.uri))
	}
	q := u.Query()
	for name := range q {
		if !slices.Contains([]string{"throughput", "autoscale", "serverless", "serverSkew", "unsafeUnverifiedAccount"}, name) {
			return cosmos.Options{}, fmt.Errorf("cosmos: parameter %s goes with an account in the URI only", name)
		}
	}
	o := cosmos.Options{ConnectionString: t.connection}
	o.Database, o.Container, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
	// The form was checked before.
	o.Throughput, _ = strconv.Atoi(q.Get("throughput"))
	o.Autoscale, _ = strconv.Atoi(q.Get("autoscale"))
	o.Serverless, _ = strconv.ParseBool(q.Get("serverless"))
	o.ServerSkew, _ = time.ParseDuration(q.Get("serverSkew"))
	o.UnsafeUnverifiedAccount, _ = strconv.ParseBool(q.Get("unsafeUnverifiedAccount"))
	return o, nil
}

// Provision says, in words, what throughput a container gets that init creates.
func (t Target) Provision() string {
	u, err := url.Parse(t.Shown)
	if err != nil || t.Scheme != Cosmos {
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

// Warning describes a shortcoming of the store, or its account, of a ledger that was used;
// empty if there is none.
func Warning(l store.Ledger) string {
	if w, ok := l.(store.Warner); ok {
		return w.Warning()
	}
	if c, ok := l.(interface{ Account() cosmos.Account }); ok {
		return c.Account().Warning()
	}
	return ""
}

// Secrets finds what may be secret in the environment: in the store's URI, and in
// the variables that hold the keys of Azure.
func Secrets(getenv func(string) string) scrub.Secrets {
	found := secret.InURI(getenv(Variable))
	for _, name := range []string{KeyVariable, "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD"} {
		found.Hide(strings.TrimSpace(getenv(name)))
	}
	// Of a connection string, all that isn't known to be harmless.
	for part := range strings.SplitSeq(getenv(ConnectionVariable), ";") {
		name, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "accountendpoint", "disableservercertificatevalidation":
		case "accountkey":
			found.Hide(strings.TrimSpace(value))
		default:
			found.Hide(part)
			found.Hide(value)
		}
	}
	return found
}
