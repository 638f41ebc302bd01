package cosmos

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// fakeCredential gives a token, or an error, or nothing before its context ends.
type fakeCredential struct {
	err   error
	hangs bool
}

func (c fakeCredential) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if c.hangs {
		<-ctx.Done()
		return azcore.AccessToken{}, ctx.Err()
	}
	return azcore.AccessToken{Token: "hunter2-token", ExpiresOn: time.Now().Add(time.Hour)}, c.err
}

func TestTokensAreSent(t *testing.T) {
	t.Parallel()
	f := newFake()
	if err := f.open(t, Options{Credential: fakeCredential{}}).Append(within(t, time.Minute), storetest.Grant("job", 1)); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.log {
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "sig=hunter2-token") {
			t.Errorf("a %s was authorized by %q, want the token", r.op, got)
		}
	}
}

func TestTokensThatCanNotBeHad(t *testing.T) {
	t.Parallel()
	refused := func(status int) error {
		return &azidentity.AuthenticationFailedError{RawResponse: refusal(status, "AADSTS700016: no such application\r\nTrace: 5")}
	}
	for name, c := range map[string]struct {
		credential fakeCredential
		want       error
	}{
		"no credential at all":         {fakeCredential{err: errors.New("DefaultAzureCredential: no source\nhas one")}, store.ErrDenied},
		"a wrong secret":               {fakeCredential{err: refused(401)}, store.ErrDenied},
		"an unknown application":       {fakeCredential{err: refused(400)}, store.ErrDenied},
		"an authority that is busy":    {fakeCredential{err: refused(429)}, nil},
		"an authority that is down":    {fakeCredential{err: refused(503)}, nil},
		"an authority out of reach":    {fakeCredential{err: &net.OpError{Op: "dial", Err: errors.New("no route")}}, nil},
		"an authority without a reply": {fakeCredential{err: &azidentity.AuthenticationFailedError{}}, nil},
		"an authority that hangs":      {fakeCredential{hangs: true}, nil},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			f := newFake()
			l := f.open(t, Options{Credential: c.credential})
			for range 2 {
				began := time.Now()
				err := l.Append(within(t, 5*time.Second), storetest.Grant("job", 1))
				wantSentinel(t, "Append()", err, c.want)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("Append() took %v, want it to end with its context", took)
				}
			}
			if n := f.ops("create"); n > 0 {
				t.Errorf("creates sent without a token = %d, want none", n)
			}
			_ = l.Close(t.Context())
		}))
	}
}
