package cosmos

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI or connection string, without the key.
type address struct {
	// endpoint is the account's URL, host the part of it that is shown.
	endpoint, host string
	// plain is HTTP without TLS, skipVerify TLS without a check of certificates.
	// Either is for emulators on a loopback address.
	plain, skipVerify   bool
	database, container string
	offer               offer
	// skew is Options.ServerSkew, or zero, and unsafe Options.UnsafeUnverifiedAccount.
	skew   time.Duration
	unsafe bool
}

// emulated says whether the address is that of an emulator.
func (a address) emulated() bool { return a.plain || a.skipVerify }

const scheme = "cosmos://"

// They are compiled when they are first used, not by each program that starts: such bounds make them large.
var (
	accountName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,61}$`) })
	hostName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$`) })
)

// parseURI takes a URI apart, and reports all that is wrong with it. Its errors quote no
// part of it but the names of parameters that look like names: anything else may be half
// a key.
func parseURI(uri string) (address, error) {
	var a address
	account, errs := a.read(uri)
	if len(errs) == 0 || account != "" {
		errs = append(errs, a.locate(account))
	}
	if a.emulated() && a.host != "" && !a.loopback() {
		errs = append(errs, errors.New("uri: insecureHTTP and insecureSkipVerify are for loopback addresses only"))
	}
	if err := errors.Join(errs...); err != nil {
		return address{}, err
	}
	if a.plain {
		a.endpoint = "http" + strings.TrimPrefix(a.endpoint, "https")
	}
	return a, nil
}

// nameless reports whether a URI names no account, since a connection string does.
func nameless(uri string) bool { return strings.HasPrefix(uri, scheme+"/") }

// read takes in what a URI says besides the account, which it returns.
func (a *address) read(uri string) (account string, errs []error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return "", []error{errors.New("uri: must begin with cosmos://")}
	}
	if strings.ContainsAny(rest, "@#") {
		return "", []error{errors.New("uri: must hold neither a key nor a user: give the key as such, not in the URI")}
	}
	rest, query, _ := strings.Cut(rest, "?")
	account, path, _ := strings.Cut(rest, "/")
	if err := a.place(path); err != nil {
		errs = append(errs, err)
	}
	return account, append(errs, a.parameters(query)...)
}

// place reads the names of database and container.
func (a *address) place(path string) error {
	names := strings.Split(strings.TrimSuffix(path, "/"), "/")
	if len(names) > 2 {
		return errors.New("uri: the path must be /DATABASE/CONTAINER or less")
	}
	for i, to := range []*string{&a.database, &a.container} {
		if i >= len(names) {
			break
		}
		name, err := url.PathUnescape(names[i])
		if err != nil {
			return errors.New("uri: database or container is not percent-encoded correctly")
		}
		if strings.Contains(name, "=") {
			// The rest of a key, or a parameter without its question mark.
			return errors.New("uri: database and container must hold no = (parameters begin with a ?)")
		}
		*to = name
	}
	return nil
}

// locate finds the endpoint of an account or host.
func (a *address) locate(account string) error {
	switch host, port, err := net.SplitHostPort(account); {
	case err == nil:
		n, numeric := strconv.ParseUint(port, 10, 16)
		bare := net.JoinHostPort(host, port) == account // Brackets are for IPv6 alone.
		if ip := net.ParseIP(host); (ip == nil && !hostName().MatchString(host)) || !bare || numeric != nil || n < 1 {
			return errors.New("uri: the account must be a name, or a host with a port from 1 to 65535")
		}
		a.host = account
	case accountName().MatchString(account):
		a.host = account + ".documents.azure.com:443"
	case hostName().MatchString(account):
		a.host = account + ":443"
	default:
		return errors.New("uri: the account must be a name of letters, digits and hyphens, or a host")
	}
	a.endpoint = "https://" + a.host + "/"
	return nil
}

func (a address) loopback() bool {
	host, _, err := net.SplitHostPort(a.host)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

func (a *address) parameters(query string) []error {
	known := []string{"throughput", "autoscale", "serverless", "serverSkew", "unsafeUnverifiedAccount", "insecureHTTP", "insecureSkipVerify"}
	return storekit.Parameters(query, known, func(name, value string) (err error) {
		switch name {
		case "throughput":
			a.offer.manual, err = someUnits(value)
		case "autoscale":
			a.offer.autoscale, err = someUnits(value)
		case "serverless":
			a.offer.serverless, err = storekit.Truth(value)
		case "serverSkew":
			a.skew, err = storekit.SkewOf(value)
		case "unsafeUnverifiedAccount":
			a.unsafe, err = storekit.Truth(value)
		case "insecureHTTP":
			a.plain, err = storekit.Truth(value)
		case "insecureSkipVerify":
			a.skipVerify, err = storekit.Truth(value)
		}
		return err
	})
}

// someUnits reads a number of RU/s, which can't be zero.
func someUnits(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n == 0 {
		return 0, errors.New("must be a number of RU/s")
	}
	return n, nil
}

// parseConnectionString takes in a connection string, and returns its key. Its errors quote
// nothing of it.
func (a *address) parseConnectionString(s string) (key string, err error) {
	bad := func(text string) (string, error) { return "", errors.New("connection string: " + text) }
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(s, ";") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || seen[name] {
			return bad("must be AccountEndpoint=…;AccountKey=…; with each name once")
		}
		seen[name] = true
		switch name {
		case "accountendpoint":
			if !a.connect(value) {
				return bad("AccountEndpoint must be of the form https://HOST:PORT/")
			}
		case "accountkey":
			key = value
		case "disableservercertificatevalidation":
			if a.skipVerify, err = strconv.ParseBool(value); err != nil {
				return bad("DisableServerCertificateValidation must be True or False")
			}
		default:
			return bad("has a part other than AccountEndpoint, AccountKey and DisableServerCertificateValidation")
		}
	}
	switch {
	case a.endpoint == "" || key == "":
		return bad("must have an AccountEndpoint and an AccountKey")
	case a.emulated() && !a.loopback():
		return bad("only to a loopback address may TLS or its certificate check be left out")
	}
	return key, nil
}

// connect takes in the endpoint of a connection string, and reports whether it is one.
func (a *address) connect(endpoint string) bool {
	u, err := storekit.Endpoint(strings.TrimSpace(endpoint))
	if err != nil || u.Path != "" && u.Path != "/" {
		return false
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	if a.locate(net.JoinHostPort(u.Hostname(), port)) != nil {
		return false
	}
	a.plain = u.Scheme == "http"
	a.endpoint = u.Scheme + "://" + a.host + "/"
	return true
}

// Redact returns a URI that may be shown. Those that Open accepts hold no secret
// and come back as they are; of any other no more than the scheme is shown.
func Redact(uri string) string {
	// With a connection string, the URI names no account.
	if _, err := parseURI(strings.Replace(uri, "cosmos:///", "cosmos://127.0.0.1:443/", 1)); err == nil {
		return uri
	}
	return storekit.Masked(uri, scheme)
}

// checkName returns a check for the fault of a database's or container's name. It is
// stricter than Azure, which allows any letter, because these names go into paths,
// signatures and JSON.
func checkName(what string) func(name string) error {
	return func(name string) error {
		if len(name) > 255 {
			return fmt.Errorf("%s %.70q…: must have at most 255 bytes", what, name)
		}
		for i, c := range name {
			if c <= ' ' || c >= 0x7f || strings.ContainsRune(`/\#?"%<>`, c) {
				return fmt.Errorf("%s %.70q: character %q at byte %d is not allowed", what, name, c, i)
			}
		}
		return nil
	}
}
