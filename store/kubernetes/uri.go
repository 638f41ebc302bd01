package kubernetes

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// scheme is what a URI begins with.
const scheme = "k8s:"

// mostSkew bounds serverSkew in a URI: with more, no slot could be worked in.
const mostSkew = time.Hour

// address is a parsed URI.
type address struct {
	namespace, kubeconfig, context string
	// skew is Options.ServerSkew, or zero.
	skew      time.Duration
	oneServer bool
}

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	plainName     = regexp.MustCompile(`^[A-Za-z]{1,24}$`)
)

// parseURI takes a URI apart, and returns all its faults. They quote no part of it but the names of parameters that look
// like names: people put tokens everywhere.
func parseURI(uri string) (a address, errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("uri: "+format, args...)) }
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return a, []error{errors.New("uri: must begin with k8s: and a namespace")}
	}
	namespace, query, _ := strings.Cut(rest, "?")
	if namespace != "" && !namespaceName.MatchString(namespace) {
		bad("the namespace must be a name of at most 63 lower-case letters, digits and hyphens, without slashes before it")
	}
	a.namespace = namespace
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.QueryUnescape(value)
		switch {
		case !plainName.MatchString(name):
			bad("each parameter must be written name=value")
		case seen[name]:
			bad("parameter %s is given twice", name)
		case !ok || err != nil || value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			bad("parameter %s has an invalid value", name)
		case name == "kubeconfig":
			a.kubeconfig = value
		case name == "context":
			a.context = value
		case name == "serverSkew":
			if a.skew, err = time.ParseDuration(value); err != nil || a.skew <= 0 || a.skew > mostSkew {
				bad("parameter serverSkew must be a duration above 0, at most %v, such as 500ms", mostSkew)
			}
		case name == "oneServer":
			if a.oneServer, err = strconv.ParseBool(value); err != nil {
				bad("parameter oneServer must be true or false")
			}
		default:
			bad("parameter %s is unknown: use kubeconfig, context, serverSkew or oneServer", name)
		}
		seen[name] = true
	}
	return a, errs
}

// Redact returns a URI that may be shown. Those that Open accepts hold no secret and come back as they are; of any other
// no more than the scheme is shown.
func Redact(uri string) string {
	if _, errs := parseURI(uri); len(errs) == 0 {
		return uri
	}
	return storekit.Masked(uri, scheme)
}
