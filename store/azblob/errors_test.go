package azblob

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A signature for reading is denied to append.
func TestAReaderIsDeniedToAppend(t *testing.T) {
	t.Parallel()
	endpoint, name := azuritepeer.Shared(t), newContainer()
	ready(t, Options{URI: uriOf(endpoint, name+"/jobs")})
	reader := opened(t, Options{URI: uriOf(endpoint, name+"/jobs"), Getenv: environment("AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint="+endpoint+";SharedAccessSignature="+signed(t, name, "rl"))})
	documenttest.Sentinel(t, "Append() by a reader", reader.Append(within(t), storetest.Grant("job", 2)), store.ErrDenied)
}

// failing is a credential that can't be had.
type failing struct{}

func (failing) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("the identity is gone\nand so on")
}

func TestWithoutATokenNothingIsSent(t *testing.T) {
	t.Parallel()
	h := &hooked{}
	l := opened(t, Options{URI: "azblob://acct/leases", Credential: failing{}, Transport: h, Getenv: func(string) string { return "" }})
	err := l.Append(within(t), storetest.Grant("job", 1))
	documenttest.Sentinel(t, "Append()", err, store.ErrDenied)
	documenttest.Says(t, "Append()", err, store.ErrNotStored, "no token of an Azure identity: the identity is gone")
	documenttest.Equal(t, "requests", h.Sent.Load(), 0)
}

// Azure refuses a date that is wrong by more than 15 min, which the server doesn't.
func TestAMachineWhoseClockIsWrongSignsRightFromTheSecondRequestOn(t *testing.T) {
	t.Parallel()
	endpoint := azuritepeer.Shared(t)
	for _, off := range []time.Duration{-3 * time.Hour, 24 * time.Hour, 0} {
		c := clock.NewMock()
		c.Set(time.Now().Add(off))
		refused := 0
		h := &hooked{Hook: func(req *http.Request) *http.Response {
			sent, err := http.ParseTime(req.Header.Get(headerDate))
			if err != nil || time.Since(sent).Abs() > 15*time.Minute {
				refused++
				return fault(403, "AuthenticationFailed")
			}
			return nil
		}}
		l := opened(t, Options{URI: uriOf(endpoint, newContainer()), Clock: c, Transport: h})
		must(t, "Init()", l.Init(context.WithoutCancel(t.Context())))
		must(t, "Append()", l.Append(context.WithoutCancel(t.Context()), storetest.Grant("job", 1)))
		want := 1
		if off == 0 {
			want = 0
		}
		documenttest.Equal(t, "refusals of a machine that is off by "+off.String(), refused, want)
		s, err := l.Now(context.WithoutCancel(t.Context()))
		if err != nil || time.Since(s.Time).Abs() > time.Minute {
			t.Errorf("Now() = %+v, %v, want the server's time", s, err)
		}
	}
}

func TestNoErrorShowsASignature(t *testing.T) {
	t.Parallel()
	const canary = "c4naryS3cretc4nary"
	l := opened(t, Options{URI: uriOf("http://127.0.0.1:1", "leases/jobs"), Getenv: environment("AZURE_STORAGE_SAS_TOKEN", "?sv=2020-12-06&se=2030-01-01&sp=rl&sig="+canary+"%3D")})
	for op, call := range documenttest.Operations(l, storetest.Grant("job", 1)) {
		err := call(within(t))
		if err == nil || strings.Contains(err.Error()+store.Detail(err), canary) {
			t.Errorf("%s = %v, want an error without the signature", op, err)
		}
	}
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	if text := documenttest.Lines(found); strings.Contains(text, canary) {
		t.Errorf("Examine() = %s, want no signature", text)
	}
}
