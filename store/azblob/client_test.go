package azblob

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// lentBy is a client of a container whose requests go through a transport, and are tried again by default.
func lentBy(t testing.TB, endpoint, name string, transport policy.Transporter) *container.Client {
	t.Helper()
	key, err := container.NewSharedKeyCredential(azuritepeer.Account, azuritepeer.Key)
	must(t, "NewSharedKeyCredential()", err)
	o := &container.ClientOptions{}
	o.Transport = transport
	o.Retry.RetryDelay = time.Millisecond
	c, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+azuritepeer.Account+"/"+name, key, o)
	must(t, "NewClientWithSharedKeyCredential()", err)
	return c
}

func TestByAClientARequestIsSentOnce(t *testing.T) {
	t.Parallel()
	endpoint, name := azuritepeer.Shared(t), newContainer()
	h := &hooked{Hook: func(req *http.Request) *http.Response {
		if conditional(req) && !strings.Contains(req.URL.Path, "ledger/-probe") {
			return fault(http.StatusInternalServerError, "InternalError")
		}
		return nil
	}}
	ready(t, Options{URI: uriOf(endpoint, name+"/jobs")})
	l := opened(t, Options{URI: uriOf(endpoint, name+"/jobs"), Client: lentBy(t, endpoint, name, h)})
	_, err := l.WorkerTypes(within(t))
	must(t, "WorkerTypes()", err)
	before := h.Sent.Load()
	err = l.Append(within(t), storetest.Grant("job", 1))
	if n := h.Sent.Load() - before; n != 1 || err == nil || errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() = %v after %d requests, want an unknown outcome after one", err, n)
	}
}

func TestCloseLeavesTheClientOpen(t *testing.T) {
	t.Parallel()
	endpoint, name := azuritepeer.Shared(t), newContainer()
	signature := signed(t, name, "racwdl")
	ready(t, Options{URI: uriOf(endpoint, name+"/jobs")})
	c, err := container.NewClientWithNoCredential(endpoint+"/"+azuritepeer.Account+"/"+name+"?"+signature, nil)
	must(t, "NewClientWithNoCredential()", err)
	l := ready(t, Options{URI: uriOf(endpoint, name+"/jobs"), Client: c})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	if s, err := l.Now(within(t)); err != nil || s.Time.IsZero() {
		t.Errorf("Now() = %+v, %v, want the service's time", s, err)
	}
	must(t, "Close()", l.Close(t.Context()))
	_, err = c.NewBlobClient("jobs/"+"ledger/-probe").GetProperties(within(t), nil)
	must(t, "GetProperties() by the client", err)
}

func TestAClientGoesWithNothingThatItHas(t *testing.T) {
	t.Parallel()
	const endpoint = "http://127.0.0.1:1"
	c := past(t, endpoint, "leases")
	for name, o := range map[string]Options{
		"a key":             {Client: c, Key: azuritepeer.Key},
		"a transport":       {Client: c, Transport: http.DefaultClient},
		"another container": {Client: past(t, endpoint, "other")},
		"another account":   {Client: past(t, "http://127.0.0.1:2", "leases")},
	} {
		o.URI = uriOf(endpoint, "leases/jobs")
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "options: ") || strings.Contains(err.Error(), azuritepeer.Key) {
			t.Errorf("Open() of a client with %s = %v, want an error", name, err)
		}
	}
}

// The application sets a new account key on the credential that its client has.
func TestAKeyMayRotate(t *testing.T) {
	t.Parallel()
	endpoint, name := azuritepeer.Shared(t), newContainer()
	ready(t, Options{URI: uriOf(endpoint, name+"/jobs")})
	key, err := container.NewSharedKeyCredential(azuritepeer.Account, base64.StdEncoding.EncodeToString([]byte("that of before")))
	must(t, "NewSharedKeyCredential()", err)
	c, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+azuritepeer.Account+"/"+name, key, nil)
	must(t, "NewClientWithSharedKeyCredential()", err)
	l := opened(t, Options{URI: uriOf(endpoint, name+"/jobs"), Client: c})
	if err := l.Append(within(t), storetest.Grant("job", 1)); !errors.Is(err, store.ErrDenied) || !errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() with the former key = %v, want ErrDenied, and that nothing was stored", err)
	}
	must(t, "SetAccountKey()", key.SetAccountKey(azuritepeer.Key))
	must(t, "Append() with the new key", l.Append(within(t), storetest.Grant("job", 1)))
}
