package kubernetes

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// scheme is what a URI begins with.
const scheme = "k8s:"

// address is a parsed URI.
type address struct {
	namespace, kubeconfig, context string
	// skew is Options.ServerSkew, or zero.
	skew      time.Duration
	oneServer bool
}

var namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// parseURI takes a URI apart, and returns all its faults. They quote no part of it but the names of parameters that look
// like names: people put tokens everywhere.
func parseURI(uri string) (a address, errs []error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return a, []error{errors.New("uri: must begin with k8s: and a namespace")}
	}
	namespace, query, _ := strings.Cut(rest, "?")
	if namespace != "" && !namespaceName.MatchString(namespace) {
		errs = append(errs, errors.New("uri: the namespace must be a name of at most 63 lower-case letters, digits and hyphens, without slashes before it"))
	}
	a.namespace = namespace
	return a, append(errs, storekit.Parameters(query, []string{"kubeconfig", "context", "serverSkew", "oneServer"}, func(name, value string) (err error) {
		switch name {
		case "kubeconfig":
			a.kubeconfig, err = storekit.Text(value)
		case "context":
			a.context, err = storekit.Text(value)
		case "serverSkew":
			a.skew, err = storekit.SkewOf(value)
		case "oneServer":
			a.oneServer, err = storekit.Truth(value)
		}
		return err
	})...)
}

// Redact returns a URI that may be shown. Those that Open accepts hold no secret and come back as they are; of any other
// no more than the scheme is shown.
func Redact(uri string) string {
	if _, errs := parseURI(uri); len(errs) == 0 {
		return uri
	}
	return storekit.Masked(uri, scheme)
}
