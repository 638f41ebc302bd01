package azblob

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// address is a parsed URI.
type address struct {
	account, container, folder string
	// service is the URL of the account.
	service *url.URL
	// plain allows HTTP without TLS to another machine.
	plain bool
	skew  time.Duration
}

const scheme = "azblob://"

// form is how a URI looks.
const form = "azblob://ACCOUNT/CONTAINER/FOLDER"

// They are compiled when they are first used, not by each program that starts: such bounds make them large.
var (
	accountName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]{3,24}$`) })
	containerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){2,62}$`) })
)

// parseURI takes a URI apart, and reports all that is wrong with it. Its errors quote no part of it but the names of
// parameters that look like names: anything else may be half a key.
func parseURI(uri string) (address, error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return address{}, errors.New("uri: must begin with azblob://")
	}
	if strings.ContainsAny(rest, "@#") {
		return address{}, errors.New("uri: must hold neither a key nor a user: keys come from the environment")
	}
	var a address
	var errs []error
	path, query, _ := strings.Cut(rest, "?")
	a.account, path, _ = strings.Cut(path, "/")
	a.container, a.folder, _ = strings.Cut(path, "/")
	a.folder = strings.TrimSuffix(a.folder, "/")
	if !accountName().MatchString(a.account) {
		errs = append(errs, errors.New("uri: the account must have 3 to 24 of a-z 0-9"))
	}
	if !containerName().MatchString(a.container) || len(a.container) > 63 {
		errs = append(errs, errors.New("uri: the container must have 3 to 63 of a-z 0-9 and single hyphens between"))
	}
	errs = append(errs, storekit.CheckFolder(a.folder))
	errs = append(errs, a.parameters(query)...)
	if a.service == nil {
		a.service = &url.URL{Scheme: "https", Host: a.account + ".blob.core.windows.net"}
	}
	if err := errors.Join(append(errs, a.locate())...); err != nil {
		return address{}, err
	}
	if a.folder != "" {
		a.folder += "/"
	}
	return a, nil
}

func (a *address) parameters(query string) []error {
	return storekit.Parameters(query, []string{"endpoint", "serverSkew", "insecureHTTP"}, func(name, value string) (err error) {
		switch name {
		case "endpoint":
			a.service, err = storekit.Endpoint(value)
		case "serverSkew":
			a.skew, err = storekit.SkewOf(value)
		case "insecureHTTP":
			a.plain, err = storekit.Truth(value)
		}
		return err
	})
}

// locate checks the endpoint, and puts the account into its path where the host doesn't name it.
func (a *address) locate() error {
	host := a.service.Hostname()
	if name, _, _ := strings.Cut(host, "."); strings.HasSuffix(name, "-secondary") {
		return errors.New("uri: parameter endpoint is the secondary one of an account, which takes no writes and may lag")
	}
	if storekit.Plain(a.service) && !a.plain {
		return errors.New("uri: parameter endpoint must be https, or on a loopback address, or insecureHTTP=true must be given")
	}
	switch strings.Trim(a.service.Path, "/") {
	case a.account:
	case "":
		if host == "localhost" || net.ParseIP(host) != nil {
			a.service.Path = "/" + a.account
		}
	default:
		return errors.New("uri: parameter endpoint must have no path, or that of the account")
	}
	a.service.Path = strings.TrimSuffix(a.service.Path, "/")
	return nil
}

// isOf refuses the URL of a client that is of another container.
func (a *address) isOf(client string) error {
	u, err := url.Parse(client)
	if a.service == nil || err == nil && u.Host == a.service.Host && strings.Trim(u.Path, "/") == strings.Trim(a.service.Path+"/"+a.container, "/") {
		return nil
	}
	return errors.New("options: the Client is of another container than the URI's, whose endpoint must be that of the Client")
}

// Redact returns a URI that may be shown. Those that Open accepts hold no secret and come back as they are; of any
// other no more than the scheme is shown.
func Redact(uri string) string {
	if _, err := parseURI(uri); err == nil {
		return uri
	}
	return storekit.Masked(uri, scheme)
}
