package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// defaultSkew is how far the servers' clocks are assumed to be apart.
const defaultSkew = 250 * time.Millisecond

// defaultRegion is that of a service that isn't Amazon's, which needs one for signatures only.
const defaultRegion = "us-east-1"

// Options of Open. URI is required.
type Options struct {
	// URI names the bucket, and a folder in it, which may be left out:
	//
	//	s3://mybucket/jobs?region=eu-central-1
	//	s3://mybucket/jobs?endpoint=https://minio.example:9000&pathStyle=true
	//
	// endpoint is the URL of a service that isn't Amazon's; the environment's AWS_ENDPOINT_URL doesn't count, so that
	// a URI always means the same ledger. region defaults to that of the environment and the files of the AWS command
	// line, and to us-east-1 with an endpoint. pathStyle puts the bucket into the path and not into the host.
	// serverSkew is ServerSkew. insecureHTTP allows an endpoint without TLS that isn't on a loopback address. A URI
	// that holds a key is refused.
	URI string

	// Client is the application's own client, in place of the URI's endpoint, region and pathStyle: the URI then names the
	// bucket and the folder. Requests go where the client's go, by its HTTPClient, and have its credentials, middleware
	// and interceptors. The ledger's own are what it needs of each request: no retries, the date of the signature, and
	// checksums. Close leaves the client open.
	Client *s3.Client
	// Credentials sign requests. What they give is kept until it ends (Expires), or the service doesn't accept it any more,
	// so that keys may rotate. Default: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, as Getenv
	// reads them, else the AWS SDK's own chain: shared files, web identity, SSO, the roles of containers and machines.
	Credentials aws.CredentialsProvider
	// Getenv reads an environment variable. Default: os.Getenv. The SDK's chain reads the environment itself.
	Getenv func(name string) string

	// ServerSkew is how far the clocks of the service's servers may differ, which can't be seen. It is an assumption
	// that can't be checked, and part of each stamp. Default: that of the URI, else 250 ms. It can't be negative.
	ServerSkew time.Duration

	// ReadOnly is for people who look: Init creates nothing, and no object is written to find out whether the service
	// can keep a ledger.
	ReadOnly bool
	// AppName names the program in requests. Default: slotlease.
	AppName string

	// Transport sends the requests. Default: one of the ledger's own, with the proxy of the environment, which trusts the
	// authorities that the file of AWS_CA_BUNDLE has, or else the system's.
	Transport Transport
	// Clock measures waits, and the time since the service's clock was read. Default: the real clock.
	Clock clock.Clock
}

// Transport sends requests, as *http.Client does.
type Transport interface {
	Do(req *http.Request) (*http.Response, error)
}

func init() {
	store.Register("s3", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			return Open(ctx, Options{URI: uri, ReadOnly: o.ReadOnly, AppName: o.AppName, Clock: o.Clock, Getenv: o.Getenv})
		},
		Redact: Redact,
		Form:   form,
		Billed: true,

		Secrets: []store.Secret{{Variable: "AWS_SECRET_ACCESS_KEY", Shared: true}, {Variable: "AWS_SESSION_TOKEN", Shared: true}},
	})
}

// Open checks the options and makes a ledger of them. It reports everything that is wrong with them at once. It waits
// for no connection: a service that can't be reached shows in the operations, and they work once it can.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	l := &Ledger{clock: o.Clock}
	if l.clock == nil {
		l.clock = clock.New()
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	var errs []error
	a, err := parseURI(o.URI)
	errs = append(errs, err)
	a.skew, err = storekit.ServerSkew(o.ServerSkew, a.skew, defaultSkew)
	errs = append(errs, err)
	switch {
	case o.Client == nil:
	case o.Credentials != nil || o.Transport != nil:
		errs = append(errs, errors.New("options: Credentials and Transport go without Client, which has its own"))
	case a.endpoint != nil || a.region != "" || a.pathStyle || a.plain:
		errs = append(errs, errors.New("options: endpoint, region, pathStyle and insecureHTTP in the URI go without Client, which has its own"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("s3: open: %w", err)
	}
	l.address = a
	if o.Client != nil {
		l.secrets.Publish(a.bucket, a.folder)
		given := o.Client.Options()
		given.AuthSchemes = nil // They would sign by the client's clock.
		if given.BaseEndpoint != nil {
			l.address.endpoint, _ = url.Parse(*given.BaseEndpoint)
		}
		l.transport = given.HTTPClient
		l.connect(given.Credentials, func(set func(*s3.Options)) *s3.Client { return s3.New(given, set) }, o)
		return l, nil
	}
	cfg, err := configure(ctx, o, a, l)
	if err != nil {
		return nil, fmt.Errorf("s3: open: %s", storekit.OneLine(l.secrets.Scrub(err.Error())))
	}
	if l.transport = o.Transport; l.transport == nil {
		own := newClient(cfg)
		l.transport, l.idle = own, own.CloseIdleConnections
	}
	l.connect(cfg.Credentials, func(set func(*s3.Options)) *s3.Client {
		return s3.NewFromConfig(cfg, func(c *s3.Options) {
			c.BaseEndpoint = nil
			if u := a.endpoint; u != nil {
				c.BaseEndpoint = aws.String(u.Scheme + "://" + u.Host)
			}
			c.UsePathStyle = a.pathStyle
			set(c)
		})
	}, o)
	return l, nil
}

// newClient is an HTTP client of the ledger's own, which trusts the certificates that AWS_CA_BUNDLE names.
func newClient(cfg aws.Config) *http.Client {
	own := storekit.NewHTTPClient(false)
	theirs, ok := cfg.HTTPClient.(*awshttp.BuildableClient)
	if t, mine := own.Transport.(*http.Transport); ok && mine {
		if c := theirs.GetTransport().TLSClientConfig; c != nil {
			t.TLSClientConfig.RootCAs = c.RootCAs
		}
	}
	return own
}

// configure is what the SDK knows of the environment: the region and the credentials.
func configure(ctx context.Context, o Options, a address, l *Ledger) (aws.Config, error) {
	id, secret, token := o.Getenv("AWS_ACCESS_KEY_ID"), o.Getenv("AWS_SECRET_ACCESS_KEY"), o.Getenv("AWS_SESSION_TOKEN")
	l.secrets.Hide(secret)
	l.secrets.Hide(token)
	l.secrets.Publish(a.bucket, a.folder)
	if a.endpoint != nil {
		l.secrets.Publish(a.endpoint.Host)
	}
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})} // Else the SDK writes warnings to the standard error.
	switch {
	case o.Credentials != nil:
		load = append(load, config.WithCredentialsProvider(o.Credentials))
	case id != "" && secret != "":
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(id, secret, token)))
	case id != "" || secret != "":
		return aws.Config{}, errors.New("one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set: set both, or none")
	}
	region := cmp.Or(a.region, o.Getenv("AWS_REGION"), o.Getenv("AWS_DEFAULT_REGION"))
	if region == "" && a.endpoint != nil {
		region = defaultRegion
	}
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err == nil && cfg.Region == "" {
		err = errors.New("no region: give region=… in the URI, or set AWS_REGION")
	}
	return cfg, err
}
