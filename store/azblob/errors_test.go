package azblob

import (
	"context"
	"encoding/base64"
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

func TestWhatTheServerSaysHasItsMeaning(t *testing.T) {
	t.Parallel()
	endpoint := azuritepeer.Shared(t)
	name := newContainer()
	l := ready(t, Options{URI: uriOf(endpoint, name+"/jobs")})
	first := storetest.Grant("job", 1)
	must(t, "Append()", l.Append(within(t, patience), first))
	documenttest.Sentinel(t, "Append() of a key that exists", l.Append(within(t, patience), first), store.ErrConflict)
	documenttest.Sentinel(t, "Get() of a key that doesn't", documenttest.ErrorOf(l.Get(within(t, patience), "job", 2)), store.ErrNotFound)

	missing := opened(t, Options{URI: uriOf(endpoint, newContainer()+"/jobs")})
	for op, call := range documenttest.Operations(missing, first) {
		if op == "Init" {
			continue
		}
		err := call(within(t, patience))
		documenttest.Sentinel(t, op+" without a container", err, store.ErrMissing)
		documenttest.Says(t, op+" without a container", err, store.ErrNotStored, "there is no container test-")
	}
	wrong := opened(t, Options{URI: uriOf(endpoint, name+"/jobs"), Key: base64.StdEncoding.EncodeToString([]byte("another"))})
	for op, call := range documenttest.Operations(wrong, storetest.Grant("job", 2)) {
		err := call(within(t, patience))
		documenttest.Sentinel(t, op+" with a wrong key", err, store.ErrDenied)
		documenttest.Is(t, op+" with a wrong key", err, store.ErrNotStored)
	}
	// A signature for reading is denied to append.
	reader := opened(t, Options{URI: uriOf(endpoint, name+"/jobs"), Getenv: environment("AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint="+endpoint+";SharedAccessSignature="+signed(t, name, "rl"))})
	documenttest.Sentinel(t, "Append() by a reader", reader.Append(within(t, patience), storetest.Grant("job", 2)), store.ErrDenied)
}

// What can't be provoked on the server is said in its place.
func TestAppendsAreUnknownUnlessTheServiceSurelyStoredNothing(t *testing.T) {
	t.Parallel()
	l, h := hookedLedger(t, Options{}, nil)
	must(t, "Init()", l.Init(within(t, patience)))
	for name, c := range map[string]struct {
		reply     *http.Response
		is        error
		notStored bool
		says      string
	}{
		"409":                       {fault(409, "BlobAlreadyExists"), store.ErrConflict, false, "409 BlobAlreadyExists"},
		"412":                       {fault(412, "ConditionNotMet"), store.ErrConflict, false, "412 ConditionNotMet"},
		"412 for another reason":    {fault(412, "LeaseIdMissing"), nil, false, "412 LeaseIdMissing"},
		"409 for another reason":    {fault(409, "PendingCopyOperation"), nil, false, "409 PendingCopyOperation"},
		"503":                       {fault(503, "ServerBusy", "Retry-After", "7"), store.ErrThrottled, false, "retry after 7s"},
		"500":                       {fault(500, "InternalError"), nil, false, "500 InternalError: a message"},
		"a time-out of the service": {fault(500, "OperationTimedOut"), nil, false, "500 OperationTimedOut"},
		"a container that goes":     {fault(409, "ContainerBeingDeleted"), store.ErrMissing, true, "is being deleted"},
		"a policy":                  {fault(409, "BlobImmutableDueToPolicy"), store.ErrDenied, true, "409 BlobImmutableDueToPolicy"},
		"an account that is off":    {fault(403, "AccountIsDisabled"), store.ErrDenied, true, "403 AccountIsDisabled"},
		"a denial":                  {fault(403, "AuthorizationPermissionMismatch"), store.ErrDenied, true, "403 AuthorizationPermissionMismatch"},
	} {
		h.hook = func(req *http.Request) *http.Response {
			if conditional(req) {
				return c.reply
			}
			return nil
		}
		err := l.Append(within(t, patience), storetest.Grant("job", 1))
		documenttest.Sentinel(t, "Append() with "+name, err, c.is)
		documenttest.Says(t, "Append() with "+name, err, nil, c.says)
		if got := errors.Is(err, store.ErrNotStored); got != c.notStored {
			t.Errorf("Append() with %s = %v: says that nothing was stored: %v, want %v", name, err, got, c.notStored)
		}
	}
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
	err := l.Append(within(t, patience), storetest.Grant("job", 1))
	documenttest.Sentinel(t, "Append()", err, store.ErrDenied)
	documenttest.Says(t, "Append()", err, store.ErrNotStored, "no token of an Azure identity: the identity is gone")
	documenttest.Equal(t, "requests", h.sent.Load(), 0)
}

// Azure refuses a date that is wrong by more than 15 min, which the server doesn't.
func TestAMachineWhoseClockIsWrongSignsRightFromTheSecondRequestOn(t *testing.T) {
	t.Parallel()
	endpoint := azuritepeer.Shared(t)
	for _, off := range []time.Duration{-3 * time.Hour, 24 * time.Hour, 0} {
		c := clock.NewMock()
		c.Set(time.Now().Add(off))
		refused := 0
		h := &hooked{hook: func(req *http.Request) *http.Response {
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
		err := call(within(t, patience))
		if err == nil || strings.Contains(err.Error()+store.Detail(err), canary) {
			t.Errorf("%s = %v, want an error without the signature", op, err)
		}
	}
	found, err := l.Examine(within(t, patience))
	must(t, "Examine()", err)
	if text := documenttest.Lines(found); strings.Contains(text, canary) {
		t.Errorf("Examine() = %s, want no signature", text)
	}
}

func TestAListThatIsNotInTheOrderOfNamesIsAnError(t *testing.T) {
	t.Parallel()
	for name, blobs := range map[string][]string{
		"twice the same":  {"jobs/ledger/job/9007199254740990", "jobs/ledger/job/9007199254740990"},
		"oldest first":    {"jobs/ledger/job/9007199254740990", "jobs/ledger/job/9007199254740989"},
		"of other folder": {"jobs/ledger/jobs/9007199254740990"},
	} {
		l, _ := hookedLedger(t, Options{}, func(req *http.Request) *http.Response {
			if req.URL.Query().Get("comp") != "list" {
				return nil
			}
			var b strings.Builder
			for _, name := range blobs {
				b.WriteString("<Blob><Name>" + name + "</Name></Blob>")
			}
			return reply(200, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="c"><Blobs>`+b.String()+"</Blobs><NextMarker/></EnumerationResults>")
		})
		_, _, err := l.Tail(within(t, patience), "job", 9)
		documenttest.Says(t, "Tail() of a list with "+name, err, nil, "not in the order of names")
	}
}
