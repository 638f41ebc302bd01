package cosmos

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// checkCredentials returns the fault of key and credential, or nil.
func checkCredentials(key string, o Options, a address) error {
	switch {
	case key != "" && o.KeyFunc != nil:
		return errors.New("options: KeyFunc and Key are both given: give one")
	case o.Credential != nil && (key != "" || o.KeyFunc != nil):
		return errors.New("options: set either Key or Credential, or KeyFunc")
	case key == "" && o.KeyFunc == nil && a.emulated():
		// The SDK would send the token all the same.
		return errors.New("options: insecureHTTP and insecureSkipVerify need a Key: tokens are sent to nobody but Azure")
	}
	if _, err := base64.StdEncoding.DecodeString(key); err != nil {
		return errors.New("options: the key is not base64: copy it from the portal as it is")
	}
	return nil
}

// signer makes clients that authenticate.
type signer func(ctx context.Context, c *conn, endpoint string, o *azcosmos.ClientOptions) (*azcosmos.Client, error)

// newSigner signs with a key, or else with tokens.
func newSigner(key string, o Options, current *storekit.Current) (signer, error) {
	if key != "" || current != nil {
		return func(ctx context.Context, _ *conn, endpoint string, o *azcosmos.ClientOptions) (*azcosmos.Client, error) {
			key := key
			if current != nil {
				var err error
				if key, err = current.Get(ctx); err != nil {
					return nil, err
				}
			}
			c, err := azcosmos.NewKeyCredential(key)
			if err != nil {
				return nil, errors.New("the key is not base64")
			}
			return azcosmos.NewClientWithKey(endpoint, c, o)
		}, nil
	}
	credential := o.Credential
	if credential == nil {
		var err error
		credential, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
			ClientOptions: policy.ClientOptions{Transport: o.Transport},
		})
		if err != nil {
			return nil, fmt.Errorf("no key, and no default credential of Azure: %w", err)
		}
	}
	return func(_ context.Context, c *conn, endpoint string, o *azcosmos.ClientOptions) (*azcosmos.Client, error) {
		return azcosmos.NewClient(endpoint, tokens{credential, c}, o)
	}, nil
}

// tokens marks the errors of a credential as such, and ends its requests with the
// connection.
type tokens struct {
	credential azcore.TokenCredential
	conn       *conn
}

func (t tokens) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	ctx, release := t.conn.bounded(ctx)
	defer release()
	token, err := t.credential.GetToken(ctx, o)
	if err != nil {
		err = &tokenError{err}
	}
	return token, err
}

// tokenError is the error of a missing token. It hides its cause from the SDK, as
// exchangeError does.
type tokenError struct{ cause error }

// Error is the first line of the cause. The next lines list each credential that was
// tried.
func (e *tokenError) Error() string {
	text, _, _ := strings.Cut(e.cause.Error(), "\n")
	return "no key, and no token of an Azure identity: " + text
}

// meaning is ErrDenied, or nil if the failure may be temporary: on the network, by a
// time-out, or at a busy authority.
func (e *tokenError) meaning() error {
	if errors.Is(e.cause, context.Canceled) || errors.Is(e.cause, context.DeadlineExceeded) {
		return nil
	}
	if _, ok := errors.AsType[net.Error](e.cause); ok {
		return nil
	}
	if a, ok := errors.AsType[*azidentity.AuthenticationFailedError](e.cause); ok {
		if r := a.RawResponse; r == nil || r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests {
			return nil
		}
	}
	return store.ErrDenied
}
