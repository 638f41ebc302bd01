package s3

import (
	"errors"
	"fmt"
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
	bucket, folder string
	// endpoint is the URL of a service that isn't Amazon's, or nil.
	endpoint  *url.URL
	region    string
	pathStyle bool
	// plain allows HTTP without TLS to another machine.
	plain bool
	skew  time.Duration
}

const scheme = "s3://"

// form is how a URI looks.
const form = "s3://BUCKET/FOLDER?endpoint=URL&region=REGION&pathStyle=true"

// They are compiled when they are first used, not by each program that starts: such bounds make them large.
var (
	bucketName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`) })
	regionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`) })
)

// parseURI takes a URI apart, and reports all that is wrong with it. Its errors quote no part of it but the names of
// parameters that look like names: anything else may be half a key.
func parseURI(uri string) (address, error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return address{}, errors.New("uri: must begin with s3://")
	}
	if strings.ContainsAny(rest, "@#") {
		return address{}, errors.New("uri: must hold neither a key nor a user: keys come from the environment, or from the files of the AWS command line")
	}
	var a address
	var errs []error
	bad := func(err error) { errs = append(errs, err) }
	path, query, _ := strings.Cut(rest, "?")
	a.bucket, a.folder, _ = strings.Cut(path, "/")
	a.folder = strings.TrimSuffix(a.folder, "/")
	bad(checkBucket(a.bucket))
	bad(storekit.CheckFolder(a.folder))
	errs = append(errs, a.parameters(query)...)
	if a.endpoint != nil && storekit.Plain(a.endpoint) && !a.plain {
		bad(errors.New("uri: endpoint must be https, or on a loopback address, or insecureHTTP=true must be given"))
	}
	if err := errors.Join(errs...); err != nil {
		return address{}, err
	}
	if a.folder != "" {
		a.folder += "/"
	}
	return a, nil
}

// checkBucket refuses what is no name of a bucket, and names of what only looks like one.
func checkBucket(name string) error {
	if !bucketName().MatchString(name) || strings.Contains(name, "..") || net.ParseIP(name) != nil {
		return errors.New("uri: the bucket must have 3 to 63 of a-z 0-9 . - and begin and end with a letter or digit")
	}
	for suffix, what := range map[string]string{
		"--x-s3":     "a directory bucket, whose lists aren't in the order of names",
		"--ol-s3":    "an Object Lambda access point, which may change what is read",
		".mrap":      "a multi-region access point, behind which buckets are copied with delay",
		"-s3alias":   "an access point: name its bucket",
		"--table-s3": "a table bucket",
	} {
		if strings.HasSuffix(name, suffix) {
			return fmt.Errorf("uri: the bucket is %s", what)
		}
	}
	return nil
}

func (a *address) parameters(query string) []error {
	return storekit.Parameters(query, []string{"endpoint", "region", "pathStyle", "serverSkew", "insecureHTTP"}, func(name, value string) (err error) {
		switch name {
		case "endpoint":
			a.endpoint, err = storekit.Endpoint(value)
			if err == nil && strings.Trim(a.endpoint.Path, "/") != "" {
				err = errors.New("must have no path")
			}
		case "region":
			if a.region = value; !regionName().MatchString(value) {
				err = errors.New("must be a region such as eu-central-1")
			}
		case "pathStyle":
			a.pathStyle, err = storekit.Truth(value)
		case "serverSkew":
			a.skew, err = storekit.SkewOf(value)
		case "insecureHTTP":
			a.plain, err = storekit.Truth(value)
		}
		return err
	})
}

// Redact returns a URI that may be shown. Those that Open accepts hold no secret and come back as they are; of any
// other no more than the scheme is shown.
func Redact(uri string) string {
	if _, err := parseURI(uri); err == nil {
		return uri
	}
	return storekit.Masked(uri, scheme)
}
