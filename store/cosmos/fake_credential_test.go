package cosmos

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// fakeCredential gives a token of an hour, unless answer fails, which gets the context
// and the number of requests so far.
type fakeCredential struct {
	asked  atomic.Int64
	answer func(ctx context.Context, asked int64) error
	lasts  time.Duration
}

func (c *fakeCredential) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	asked := c.asked.Add(1)
	if c.answer != nil {
		if err := c.answer(ctx, asked); err != nil {
			return azcore.AccessToken{}, err
		}
	}
	return azcore.AccessToken{Token: "hunter2-token", ExpiresOn: time.Now().Add(cmp.Or(c.lasts, time.Hour))}, nil
}

func TestTokensAreSent(t *testing.T) {
	t.Parallel()
	f := newFake()
	must(t, "Append()", f.open(t, Options{Credential: &fakeCredential{}}).Append(within(t, time.Minute), storetest.Grant("job", 1)))
	for _, r := range f.log {
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "sig=hunter2-token") {
			t.Errorf("a %s was authorized by %q, want the token", r.op, got)
		}
	}
}

func TestTokensThatCanNotBeHad(t *testing.T) {
	t.Parallel()
	refused := func(status int) error {
		return &azidentity.AuthenticationFailedError{RawResponse: newFake().response(&fakeRequest{}, refusal(status, "AADSTS700016: no such application\r\nTrace: 5"))}
	}
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"no credential at all":         {errors.New("DefaultAzureCredential: no source\nhas one"), store.ErrDenied},
		"a wrong secret":               {refused(401), store.ErrDenied},
		"an unknown application":       {refused(400), store.ErrDenied},
		"an authority that is busy":    {refused(429), nil},
		"an authority that is down":    {refused(503), nil},
		"an authority out of reach":    {&net.OpError{Op: "dial", Err: errors.New("no route")}, nil},
		"an authority without a reply": {&azidentity.AuthenticationFailedError{}, nil},
		"an authority that hangs":      {nil, nil},
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			l := f.open(t, Options{Credential: &fakeCredential{answer: func(ctx context.Context, _ int64) error {
				if c.err == nil {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.err
			}}})
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
