package cosmos

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
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

var (
	accountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,61}$`)
	hostName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$`)
)

// parseURI takes a URI apart, and reports all that is wrong with it. Its errors quote no
// part of it but the names of parameters that look like names: anything else may be half
// a key.
func parseURI(uri string) (address, error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return address{}, errors.New("uri: must begin with cosmos://")
	}
	if strings.ContainsAny(rest, "@#") {
		return address{}, errors.New("uri: must hold neither a key nor a user: give the key as such, not in the URI")
	}
	rest, query, _ := strings.Cut(rest, "?")
	account, path, _ := strings.Cut(rest, "/")
	var a address
	errs := append([]error{a.locate(account), a.place(path)}, a.parameters(query)...)
	if a.emulated() && errs[0] == nil && !a.loopback() {
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
		if ip := net.ParseIP(host); (ip == nil && !hostName.MatchString(host)) || !bare || numeric != nil || n < 1 {
			return errors.New("uri: the account must be a name, or a host with a port from 1 to 65535")
		}
		a.host = account
	case accountName.MatchString(account):
		a.host = account + ".documents.azure.com:443"
	case hostName.MatchString(account):
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

// parseConnectionString takes a connection string apart. Its errors quote
// nothing of it.
func parseConnectionString(s string) (a address, key string, err error) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(s, ";") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || seen[name] {
			return address{}, "", errors.New("connection string: must be AccountEndpoint=…;AccountKey=…; with each name once")
		}
		seen[name] = true
		switch name {
		case "accountendpoint":
			if err := a.connect(value); err != nil {
				return address{}, "", err
			}
		case "accountkey":
			key = value
		case "disableservercertificatevalidation":
			if a.skipVerify, err = strconv.ParseBool(value); err != nil {
				return address{}, "", errors.New("connection string: DisableServerCertificateValidation must be True or False")
			}
		default:
			return address{}, "", errors.New("connection string: has a part other than AccountEndpoint, AccountKey and DisableServerCertificateValidation")
		}
	}
	switch {
	case a.endpoint == "" || key == "":
		return address{}, "", errors.New("connection string: must have an AccountEndpoint and an AccountKey")
	case a.emulated() && !a.loopback():
		return address{}, "", errors.New("connection string: only to a loopback address may TLS or its certificate check be left out")
	}
	return a, key, nil
}

// connect takes in the endpoint of a connection string.
func (a *address) connect(endpoint string) error {
	wrong := errors.New("connection string: AccountEndpoint must be of the form https://HOST:PORT/")
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" {
		return wrong
	}
	port := map[string]string{"https": "443", "http": "80"}[u.Scheme]
	if port == "" {
		return wrong
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if err := a.locate(net.JoinHostPort(u.Hostname(), port)); err != nil {
		return wrong
	}
	a.plain = u.Scheme == "http"
	a.endpoint = u.Scheme + "://" + a.host + "/"
	return nil
}

// Redact returns a URI that may be shown. Those that Open accepts hold no secret
// and come back as they are; of any other no more than the scheme is shown.
func Redact(uri string) string {
	if _, err := parseURI(uri); err == nil {
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
