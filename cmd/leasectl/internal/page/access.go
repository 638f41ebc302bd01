package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Access says who may ask, and for what. The zero value lets in whoever is on this machine, and lets nobody act.
type Access struct {
	// Token is what each request has to bring, as Authorization: Bearer; empty: nothing.
	Token string
	// UserHeader is a header in which a proxy names the user, without whom no request is answered; empty: there is no proxy.
	UserHeader string
	// Hosts are the names, without a port, under which browsers reach the page, beside those of the loopback interface.
	Hosts []string
	// Actions lets users give orders.
	Actions bool
}

// failure is an answer that isn't what was asked for.
type failure struct {
	code int
	text string
}

func (f failure) Error() string { return f.text }

func refuse(code int, format string, args ...any) error {
	return failure{code, fmt.Sprintf(format, args...)}
}

// maxUser bounds the name of a user, which stands in the ledger as the actor of orders.
const maxUser = 200

// check decides about a request for data. The user is the one that a proxy names, else empty.
func (a Access) check(r *http.Request) (user string, err error) {
	if err := a.checkHost(r); err != nil {
		return "", err
	}
	// Browsers say so of what another site makes them ask for. A page has no way to say otherwise.
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return "", refuse(http.StatusForbidden, "the request comes from another site")
	}
	if a.Token != "" {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		is, want := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(a.Token))
		if !ok || subtle.ConstantTimeCompare(is[:], want[:]) != 1 {
			return "", refuse(http.StatusUnauthorized, "a token is needed: that of --token-file")
		}
	}
	if a.UserHeader == "" {
		return "", nil
	}
	names := r.Header.Values(a.UserHeader)
	control := func(c rune) bool { return c < ' ' || c == 0x7f }
	if len(names) != 1 || names[0] == "" || len(names[0]) > maxUser || strings.ContainsFunc(names[0], control) {
		return "", refuse(http.StatusUnauthorized, "the proxy has to name one user, in %s", a.UserHeader)
	}
	return names[0], nil
}

// checkHost decides whether the browser may have been led here under another name: that would be the page of another
// site, to whose scripts the browser would show all answers. Such a page has no token.
func (a Access) checkHost(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(host), "["), "]")
	if a.Token != "" || slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, host) || a.named(host) {
		return nil
	}
	return refuse(http.StatusForbidden, "host %.80q isn't a name of this page: give it with --host", r.Host)
}

// named reports that a host is one of Hosts.
func (a Access) named(host string) bool {
	return slices.ContainsFunc(a.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// checkOrder decides about a request to act, after check: that it comes from the page itself, and not from a form or a script
// of another site.
func (a Access) checkOrder(r *http.Request) error {
	kind, _, unread := mime.ParseMediaType(r.Header.Get("Content-Type"))
	origin, err := url.Parse(r.Header.Get("Origin"))
	switch {
	case !a.Actions:
		return refuse(http.StatusForbidden, "this page only shows: leasectl serve --allow-actions lets it act")
	case unread != nil || kind != "application/json" || r.Header.Get("X-Slotlease") != "1":
		return refuse(http.StatusForbidden, "an order needs Content-Type: application/json and X-Slotlease: 1")
	case err != nil || origin.Host == "" || origin.Scheme != "http" && origin.Scheme != "https":
		return refuse(http.StatusForbidden, "the header Origin is missing, or names no site")
	case strings.EqualFold(origin.Host, r.Host):
		return nil
	}
	// A proxy asks here under another name. On this machine it has none: there, each port is another site.
	name := origin.Hostname()
	if ip := net.ParseIP(name); strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback() || !a.named(name) {
		return refuse(http.StatusForbidden, "origin %.80q isn't this page: behind a proxy, give its name with --host", origin.Host)
	}
	return nil
}
