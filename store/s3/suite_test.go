package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var (
	within = suites.Deadline
	must   = documenttest.Must
)

// environment is one with the peer's key, or another.
func environment(id string) func(name string) string {
	return func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": s3peer.Secret}[name]
	}
}

// past is a client that reaches a server past the store.
func past(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &endpoint, UsePathStyle: true, Region: defaultRegion,
		Credentials: credentials.NewStaticCredentialsProvider(s3peer.ID, s3peer.Secret, ""),
	})
}

// newBucket is the name of a bucket that nobody has.
func newBucket() string { return "test-" + strings.ToLower(rand.Text()) }

// uriOf is the URI of a bucket and folder on a server.
func uriOf(endpoint, path string) string {
	return scheme + path + "?pathStyle=true&endpoint=" + url.QueryEscape(endpoint)
}

// opened opens a ledger that is closed with the test.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	if o.Getenv == nil {
		o.Getenv = environment(s3peer.ID)
	}
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// either is an opened ledger by the URI, or by a client of the application's, in turns.
func either(t testing.TB, endpoint, path string) *Ledger {
	t.Helper()
	if turns.Add(1)%2 == 0 {
		return opened(t, Options{URI: uriOf(endpoint, path)})
	}
	return opened(t, Options{URI: scheme + path, Client: past(endpoint)})
}

var turns atomic.Int64

// ready is an opened ledger that is initialised.
func ready(t testing.TB, o Options) *Ledger {
	t.Helper()
	l := opened(t, o)
	must(t, "Init()", l.Init(within(t)))
	return l
}

// grant lets the other user of a server do something in a bucket.
func grant(t testing.TB, client *s3.Client, bucket string, actions ...string) {
	t.Helper()
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":[%q]},"Action":["%s"],"Resource":["arn:aws:s3:::%s","arn:aws:s3:::%[3]s/*"]}]}`,
		s3peer.Reader, strings.Join(actions, `","`), bucket)
	_, err := client.PutBucketPolicy(within(t), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: &policy})
	must(t, "PutBucketPolicy()", err)
}

// skips are what the suite can't show.
var skips = map[string]string{
	"hostile names from outside/*/plant *": "the server keeps objects in files, whose names can't have a NUL",
	"foreign constraints":                  "a bucket has no other keys, and no triggers",
	"two paths":                            "the bucket is the same, whatever the address",
	"watch":                                "the store gives no hints",
}

func TestConformance(t *testing.T) {
	t.Parallel()
	endpoint := s3peer.Shared(t)
	client := past(endpoint)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		bucket := newBucket()
		put := func(t testing.TB, name string, body []byte) {
			t.Helper()
			_, _ = client.CreateBucket(within(t), &s3.CreateBucketInput{Bucket: &bucket})
			_, err := client.PutObject(within(t), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("jobs/" + name), Body: bytes.NewReader(body)})
			must(t, "plant "+name, err)
		}
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return either(t, endpoint, bucket+"/jobs")
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				if strings.Contains(workerType, "\x00") {
					t.Skip("the server keeps objects in files, whose names can't have a NUL")
				}
				put(t, storekit.RecordName(workerType, seq), storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				put(t, storekit.PresenceName(workerType, id), storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields))
			},
			OpenReading: func(t testing.TB) store.Ledger {
				t.Helper()
				grant(t, client, bucket, "s3:GetObject", "s3:ListBucket")
				return opened(t, Options{URI: uriOf(endpoint, bucket+"/jobs"), Getenv: environment(s3peer.Reader)})
			},
			Skips:     skips,
			FreeStamp: true,
			Rounds:    100, // Each append is a request over HTTP that writes a file.
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
		Stored: func() *http.Response { return reply(200, "", "ETag", `"x"`) },
		Lists:  func(req *http.Request) bool { return req.URL.Query().Get("list-type") == "2" },
		Listed: func(names []string) *http.Response {
			return reply(200, "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated><Contents><Key>"+strings.Join(names, "</Key></Contents><Contents><Key>")+"</Key></Contents></ListBucketResult>")
		},
		Missing: func(t *testing.T) store.Ledger {
			t.Helper()
			return opened(t, Options{URI: uriOf(s3peer.Shared(t), newBucket()+"/jobs")})
		},
		NoBucket: "there is no bucket test-",
		Denied: map[string]func(t *testing.T) store.Ledger{
			"with an unknown id": stranger(environment("AKIDNOBODY")), "without rights": stranger(environment(s3peer.Reader)),
			"with a wrong secret": stranger(func(name string) string {
				return map[string]string{"AWS_ACCESS_KEY_ID": s3peer.ID, "AWS_SECRET_ACCESS_KEY": "another"}[name]
			}),
		},
		Puts: map[string]documenttest.Put{
			"412":                        {Reply: fault(412, "PreconditionFailed"), Is: store.ErrConflict, Says: "412 PreconditionFailed"},
			"503":                        {Reply: fault(503, "SlowDown", "Retry-After", "7"), Is: store.ErrThrottled, Says: "retry after 7s"},
			"503 without a code":         {Reply: reply(503, "", "Retry-After", "3"), Is: store.ErrThrottled, Says: "retry after 3s"},
			"429":                        {Reply: fault(429, "TooManyRequests"), Is: store.ErrThrottled, Says: "429"},
			"500":                        {Reply: fault(500, "InternalError"), Says: "500 InternalError: a message"},
			"503 for another reason":     {Reply: fault(503, "ServiceUnavailable"), Says: "503 ServiceUnavailable"},
			"a time-out":                 {Reply: fault(400, "RequestTimeout"), Says: "400 RequestTimeout"},
			"another region":             {Reply: fault(301, "PermanentRedirect", "X-Amz-Bucket-Region", "eu-west-3"), NotStored: true, Says: "the bucket is in the region eu-west-3: give region=… in the URI"},
			"a region that is wrong":     {Reply: fault(400, "AuthorizationHeaderMalformed"), NotStored: true, Says: "the bucket is in another region"},
			"an expired token":           {Reply: fault(400, "ExpiredToken"), Is: store.ErrDenied, NotStored: true, Says: "400 ExpiredToken"},
			"a denial":                   {Reply: fault(403, "AccessDenied"), Is: store.ErrDenied, NotStored: true, Says: "403 AccessDenied"},
			"nothing that is understood": {Reply: reply(200, ""), Says: "the reply is none of the service"},
		},
	}.Run(t)
}

// stranger opens a ledger in a bucket that is there, with a login that isn't good for it.
func stranger(login func(name string) string) func(t *testing.T) store.Ledger {
	return func(t *testing.T) store.Ledger {
		t.Helper()
		uri := uriOf(s3peer.Shared(t), newBucket()+"/jobs")
		ready(t, Options{URI: uri})
		return opened(t, Options{URI: uri, Getenv: login})
	}
}
