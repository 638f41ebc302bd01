package storeuri

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
)

// cosmosTarget completes a target in Cosmos DB from the environment. Its errors
// quote nothing that could be secret; Open reports those of the URI.
func cosmosTarget(t Target, getenv func(string) string) (Target, error) {
	var err error
	if t.key, t.connection, err = cosmos.Credentials(t.uri, getenv); err != nil {
		return Target{}, fmt.Errorf("cosmos: %w", err)
	}
	t.getenv = getenv
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

// openCosmos makes a ledger in Cosmos DB.
func (t Target) openCosmos(ctx context.Context) (store.Ledger, error) {
	l, err := store.Open(ctx, t.uri, store.OpenOptions{Getenv: t.getenv})
	if err == nil {
		return l, nil
	}
	form := ""
	switch {
	case t.connection != "" && strings.Contains(err.Error(), "the URI"): // It has the fault.
		form = "cosmos:///DATABASE/CONTAINER, as in leasectl --help"
	case t.connection != "":
		form = "check " + cosmos.ConnectionVariable
	case strings.Contains(err.Error(), "open: uri: "): // A key isn't part of it.
		form = "cosmos://ACCOUNT/DATABASE/CONTAINER, as in leasectl --help"
	}
	return nil, exit.BadUsage(form, err)
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
// the variables that hold the keys of stores.
func Secrets(getenv func(string) string) scrub.Secrets {
	found := secret.InURI(getenv(Variable))
	for _, scheme := range store.Schemes() {
		d, _ := store.DriverOf(scheme + ":")
		for _, s := range d.Secrets {
			hideValue(&found, getenv(s.Variable))
		}
	}
	for _, name := range []string{cosmos.KeyVariable, "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD"} {
		found.Hide(strings.TrimSpace(getenv(name)))
	}
	// Of a connection string, all that isn't known to be harmless.
	for part := range strings.SplitSeq(getenv(cosmos.ConnectionVariable), ";") {
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

// hideValue hides a password or key, or a connection string and the keys in it.
func hideValue(s *scrub.Secrets, value string) {
	value = strings.TrimSpace(value)
	s.Hide(value)
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ';' || r == '&' || r == '?' }) {
		if name, key, ok := strings.Cut(part, "="); ok && (scrub.IsSecret(name) || strings.HasSuffix(strings.ToLower(name), "key")) {
			s.Hide(key)
		}
	}
}
