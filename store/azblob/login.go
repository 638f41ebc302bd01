package azblob

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/slotlease/slotlease/store"
)

// login is what requests are authorised with: a key, a shared access signature, or tokens.
type login struct {
	key string
	// sas is the query of a shared access signature.
	sas        string
	credential azcore.TokenCredential
}

// signature is the secret part of a shared access signature, or empty.
func (o login) signature() string {
	q, err := url.ParseQuery(o.sas)
	if err != nil {
		return o.sas
	}
	return q.Get("sig")
}

// identify finds the one thing that requests are authorised with. Its errors quote none of it.
func identify(o Options, a address) (login, error) {
	got := login{key: o.Key, credential: o.Credential}
	switch {
	case o.Client != nil && (o.Key != "" || o.Credential != nil || o.Transport != nil):
		return got, errors.New("options: Key, Credential and Transport go without Client, which has its own")
	case o.Client != nil:
		return got, a.isOf(o.Client.URL())
	case o.Credential != nil && o.Key != "":
		return got, errors.New("options: set either Key or Credential")
	case o.Key == "" && o.Credential == nil:
		if err := got.read(o.Getenv, a); err != nil {
			return got, err
		}
	}
	if _, err := base64.StdEncoding.DecodeString(got.key); err != nil {
		return got, errors.New("the account key is not base64: copy it from the portal as it is")
	}
	if got.sas != "" {
		q, err := url.ParseQuery(got.sas)
		if err != nil || q.Get("sig") == "" || q.Get("se") == "" {
			return got, errors.New("the shared access signature must have the form sv=…&se=…&sig=…")
		}
	}
	if got.key == "" && got.sas == "" && a.service != nil && a.service.Scheme != "https" {
		return got, errors.New("an endpoint without TLS needs a key or a shared access signature: tokens are sent to nobody but Azure")
	}
	return got, nil
}

// read takes a login from the environment, if it has one.
func (o *login) read(getenv func(string) string, a address) error {
	const keyName, stringName, sasName = "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN"
	var set []string
	for _, name := range []string{keyName, stringName, sasName} {
		if getenv(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) > 1 {
		return fmt.Errorf("%s are set: set one", strings.Join(set, " and "))
	}
	o.key, o.sas = getenv(keyName), getenv(sasName)
	if text := getenv(stringName); text != "" {
		parts, err := connection(text)
		if err != nil {
			return err
		}
		if name := parts["accountname"]; name != "" && a.account != "" && name != a.account {
			return errors.New(stringName + " is that of another account than the URI's")
		}
		o.key, o.sas = parts["accountkey"], parts["sharedaccesssignature"]
		if (o.key == "") == (o.sas == "") {
			return errors.New(stringName + " must have either an AccountKey or a SharedAccessSignature")
		}
	}
	o.sas = strings.TrimPrefix(o.sas, "?")
	return nil
}

// connection takes a connection string apart, by names in lower case.
func connection(text string) (map[string]string, error) {
	parts := map[string]string{}
	for pair := range strings.SplitSeq(text, ";") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := parts[name]; twice || !ok {
			return nil, errors.New("AZURE_STORAGE_CONNECTION_STRING must be AccountName=…;AccountKey=…; with each name once")
		}
		parts[name] = value
	}
	return parts, nil
}

// client is one of the container.
func (o login) client(l *Ledger, options container.ClientOptions) (*container.Client, error) {
	at := l.address.service.JoinPath(l.address.container).String()
	key, err := container.NewSharedKeyCredential(l.address.account, o.key)
	if err != nil {
		return nil, err
	}
	options.PerCallPolicies = []policy.Policy{dated{l}}
	switch {
	case o.key != "":
		return container.NewClientWithSharedKeyCredential(at, key, &options)
	case o.sas != "":
		return container.NewClientWithNoCredential(at, &options)
	case o.credential == nil:
		o.credential, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
			ClientOptions: policy.ClientOptions{Transport: l.transport},
		})
		if err != nil {
			return nil, fmt.Errorf("no key, and no default credential of Azure: %w", err)
		}
	}
	return container.NewClient(at, tokens{o.credential}, &options)
}

// tokens marks the errors of a credential as such.
type tokens struct{ azcore.TokenCredential }

func (t tokens) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := t.TokenCredential.GetToken(ctx, o)
	if err != nil && ctx.Err() == nil {
		err = noToken{err}
	}
	return token, err
}

// noToken is the error of a missing token. Nothing was sent.
type noToken struct{ cause error }

// Error is the first line of the cause. The next lines list each credential that was tried.
func (e noToken) Error() string {
	text, _, _ := strings.Cut(e.cause.Error(), "\n")
	return "no key, and no token of an Azure identity: " + text
}

func (e noToken) Unwrap() []error { return []error{store.ErrNotStored, e.cause} }
