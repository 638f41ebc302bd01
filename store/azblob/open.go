package azblob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// defaultSkew is how far the servers' clocks are assumed to be apart.
const defaultSkew = 250 * time.Millisecond

// Options of Open. URI is required.
type Options struct {
	// URI names the account, the container, and a folder in it, which may be left out:
	//
	//	azblob://myaccount/leases/jobs
	//	azblob://myaccount/leases?endpoint=https://myaccount.blob.core.chinacloudapi.cn
	//
	// endpoint is the URL of the account, if it isn't https://ACCOUNT.blob.core.windows.net; on an IP address or
	// localhost it has the account in its path, as Azurite does. serverSkew is ServerSkew. insecureHTTP allows an
	// endpoint without TLS that isn't on a loopback address. A URI that holds a key is refused.
	URI string

	// Client is the application's own client of the URI's container. Requests have its credential, its transport and its
	// policies, and are sent once, whatever its RetryOptions say. Their dates are of the machine's clock, which must be
	// right within 15 min. A key that rotates is that of the client's own container.SharedKeyCredential. Close leaves the client open.
	Client *container.Client
	// Key is an account key. Default: what one of these variables has, as Getenv reads them: AZURE_STORAGE_KEY,
	// AZURE_STORAGE_CONNECTION_STRING (of this account; its endpoints don't count), or AZURE_STORAGE_SAS_TOKEN.
	Key string
	// Credential gives tokens of Microsoft Entra ID. Default, if there is no key either: azidentity's default
	// credential (environment, workload identity, managed identity, Azure CLI …). Tokens need https.
	Credential azcore.TokenCredential
	// Getenv reads an environment variable. Default: os.Getenv. The default credential reads the environment itself.
	Getenv func(name string) string

	// ServerSkew is how far the clocks of the service's servers may differ, which can't be seen. It is an assumption
	// that can't be checked, and part of each stamp. Default: that of the URI, else 250 ms. It can't be negative.
	ServerSkew time.Duration

	// ReadOnly is for people who look: Init creates nothing, and no blob is written to find out whether the service
	// can keep a ledger.
	ReadOnly bool
	// AppName names the program in requests, in its first 24 bytes. Default: slotlease.
	AppName string

	// Transport sends the requests. Default: one of the ledger's own, with the proxy of the environment.
	Transport Transport
	// Clock measures waits, and the time since the service's clock was read. Default: the real clock.
	Clock clock.Clock
}

// Transport sends requests, as *http.Client does.
type Transport interface {
	Do(req *http.Request) (*http.Response, error)
}

func init() {
	store.Register("azblob", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			return Open(ctx, Options{URI: uri, ReadOnly: o.ReadOnly, AppName: o.AppName, Clock: o.Clock, Getenv: o.Getenv})
		},
		Redact: Redact,
		Form:   form,
		Billed: true,

		Secrets: []store.Secret{
			{Variable: "AZURE_STORAGE_KEY", Shared: true}, {Variable: "AZURE_STORAGE_CONNECTION_STRING", Shared: true}, {Variable: "AZURE_STORAGE_SAS_TOKEN", Shared: true},
		},
	})
}

// Open checks the options and makes a ledger of them. It reports everything that is wrong with them at once. It waits
// for no connection: an account that can't be reached shows in the operations, and they work once it can.
func Open(_ context.Context, o Options) (*Ledger, error) {
	l := &Ledger{}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	var errs []error
	a, err := parseURI(o.URI)
	errs = append(errs, err)
	a.skew, err = storekit.ServerSkew(o.ServerSkew, a.skew, defaultSkew)
	errs = append(errs, err)
	login, err := identify(o, a)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("azblob: open: %w", err)
	}
	l.address = a
	if o.Client != nil {
		_, login.sas, _ = strings.Cut(o.Client.URL(), "?")
	}
	l.secrets.Hide(login.key)
	l.secrets.Hide(login.signature())
	l.secrets.Publish(a.service.Host, a.account, a.container, a.folder)
	if l.transport = o.Transport; l.transport == nil {
		own := storekit.NewHTTPClient(false)
		l.transport, l.idle = own, own.CloseIdleConnections
	}
	if err := l.connect(o, login); err != nil {
		return nil, fmt.Errorf("azblob: open: %s", storekit.OneLine(l.secrets.Scrub(err.Error())))
	}
	return l, nil
}
