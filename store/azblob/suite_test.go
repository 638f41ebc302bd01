package azblob

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var (
	within = suites.Deadline
	must   = documenttest.Must
)

// environment has one variable.
func environment(name, value string) func(name string) string {
	return func(asked string) string { return map[string]string{name: value}[asked] }
}

// past is a client that reaches a container past the store.
func past(t testing.TB, endpoint, name string) *container.Client {
	t.Helper()
	key, err := container.NewSharedKeyCredential(azuritepeer.Account, azuritepeer.Key)
	must(t, "NewSharedKeyCredential()", err)
	c, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+azuritepeer.Account+"/"+name, key, nil)
	must(t, "NewClientWithSharedKeyCredential()", err)
	return c
}

// signed is a shared access signature for a container.
func signed(t testing.TB, name, permissions string) string {
	t.Helper()
	key, err := container.NewSharedKeyCredential(azuritepeer.Account, azuritepeer.Key)
	must(t, "NewSharedKeyCredential()", err)
	q, err := sas.BlobSignatureValues{
		Version: "2020-12-06", Protocol: sas.ProtocolHTTPSandHTTP, ExpiryTime: time.Now().UTC().Add(time.Hour), ContainerName: name, Permissions: permissions,
	}.SignWithSharedKey(key)
	must(t, "SignWithSharedKey()", err)
	return q.Encode()
}

// newContainer is the name of a container that nobody has.
func newContainer() string { return "test-" + strings.ToLower(rand.Text()) }

// uriOf is the URI of a container and folder on a server.
func uriOf(endpoint, path string) string {
	return scheme + azuritepeer.Account + "/" + path + "?endpoint=" + url.QueryEscape(endpoint)
}

// opened opens a ledger that is closed with the test.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	if o.Getenv == nil {
		o.Getenv = environment("AZURE_STORAGE_KEY", azuritepeer.Key)
	}
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// either is an opened ledger by a key, or by a client of the application's, in turns.
func either(t testing.TB, endpoint, name string) *Ledger {
	t.Helper()
	o := Options{URI: uriOf(endpoint, name+"/jobs")}
	if turns.Add(1)%2 == 0 {
		o.Client = past(t, endpoint, name)
	}
	return opened(t, o)
}

var turns atomic.Int64

// ready is an opened ledger that is initialised.
func ready(t testing.TB, o Options) *Ledger {
	t.Helper()
	l := opened(t, o)
	must(t, "Init()", l.Init(within(t)))
	return l
}

// skips are what the suite can't show.
var skips = map[string]string{
	"hostile names from outside/*/plant *": "the server can't list names with control characters",
	"foreign constraints":                  "a container has no other keys, and no triggers",
	"two paths":                            "the container is the same, whatever the address",
	"watch":                                "the store gives no hints",
}

func TestConformance(t *testing.T) {
	suites.SharedKit(t, "store/s3")
	t.Parallel()
	endpoint := azuritepeer.Shared(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		name := newContainer()
		client := past(t, endpoint, name)
		t.Cleanup(func() { // The server takes longer, the more blobs it has.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			_, _ = client.Delete(ctx, nil)
		})
		put := func(t testing.TB, blob string, body []byte) {
			t.Helper()
			_, err := client.NewBlockBlobClient("jobs/"+blob).UploadBuffer(within(t), body, nil)
			must(t, "plant "+blob, err)
		}
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return either(t, endpoint, name)
			},
			OpenReading: func(t testing.TB) store.Ledger {
				t.Helper()
				return opened(t, Options{URI: uriOf(endpoint, name+"/jobs"), Getenv: environment("AZURE_STORAGE_SAS_TOKEN", signed(t, name, "rl"))})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				if strings.ContainsFunc(workerType, unicode.IsControl) {
					t.Skip("the server can't list names with control characters")
				}
				put(t, storekit.RecordName(workerType, seq), storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				put(t, storekit.PresenceName(workerType, id), storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields))
			},
			Skips:     skips,
			FreeStamp: true,
			Rounds:    20, // Each append is a request over HTTP to one thread.
		}
	})
}

func TestWhatBucketsShare(t *testing.T) {
	t.Parallel()
	documenttest.Bucket{
		Open: func(t *testing.T, h *hooked, readOnly bool) store.Ledger {
			t.Helper()
			return behind(t, Options{ReadOnly: readOnly}, h)
		},
		Stored: func() *http.Response { return reply(201, "") },
		Lists:  func(req *http.Request) bool { return req.URL.Query().Get("comp") == "list" },
		Listed: func(names []string) *http.Response {
			return reply(200, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="c"><Blobs><Blob><Name>`+strings.Join(names, "</Name></Blob><Blob><Name>")+"</Name></Blob></Blobs><NextMarker/></EnumerationResults>")
		},
		Missing: func(t *testing.T) store.Ledger {
			t.Helper()
			return opened(t, Options{URI: uriOf(azuritepeer.Shared(t), newContainer()+"/jobs")})
		},
		NoBucket: "there is no container test-",
		Denied: map[string]func(t *testing.T) store.Ledger{"with a wrong key": func(t *testing.T) store.Ledger {
			t.Helper()
			uri := uriOf(azuritepeer.Shared(t), newContainer()+"/jobs")
			ready(t, Options{URI: uri})
			return opened(t, Options{URI: uri, Key: base64.StdEncoding.EncodeToString([]byte("another"))})
		}},
		Puts: map[string]documenttest.Put{
			"409":                       {Reply: fault(409, "BlobAlreadyExists"), Is: store.ErrConflict, Says: "409 BlobAlreadyExists"},
			"412":                       {Reply: fault(412, "ConditionNotMet"), Is: store.ErrConflict, Says: "412 ConditionNotMet"},
			"412 for another reason":    {Reply: fault(412, "LeaseIdMissing"), Says: "412 LeaseIdMissing"},
			"409 for another reason":    {Reply: fault(409, "PendingCopyOperation"), Says: "409 PendingCopyOperation"},
			"503":                       {Reply: fault(503, "ServerBusy", "Retry-After", "7"), Is: store.ErrThrottled, Says: "retry after 7s"},
			"500":                       {Reply: fault(500, "InternalError"), Says: "500 InternalError: a message"},
			"a time-out of the service": {Reply: fault(500, "OperationTimedOut"), Says: "500 OperationTimedOut"},
			"a container that goes":     {Reply: fault(409, "ContainerBeingDeleted"), Is: store.ErrMissing, NotStored: true, Says: "is being deleted"},
			"a policy":                  {Reply: fault(409, "BlobImmutableDueToPolicy"), Is: store.ErrDenied, NotStored: true, Says: "409 BlobImmutableDueToPolicy"},
			"an account that is off":    {Reply: fault(403, "AccountIsDisabled"), Is: store.ErrDenied, NotStored: true, Says: "403 AccountIsDisabled"},
			"a denial":                  {Reply: fault(403, "AuthorizationPermissionMismatch"), Is: store.ErrDenied, NotStored: true, Says: "403 AuthorizationPermissionMismatch"},
		},
	}.Run(t)
}
