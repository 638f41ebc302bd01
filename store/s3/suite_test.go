package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// patience bounds operations that must succeed, on a machine that is busy.
const patience = time.Minute

var (
	within = documenttest.Within
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

// ready is an opened ledger that is initialised.
func ready(t testing.TB, o Options) *Ledger {
	t.Helper()
	l := opened(t, o)
	must(t, "Init()", l.Init(within(t, patience)))
	return l
}

// grant lets the other user of a server do something in a bucket.
func grant(t testing.TB, client *s3.Client, bucket string, actions ...string) {
	t.Helper()
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":[%q]},"Action":["%s"],"Resource":["arn:aws:s3:::%s","arn:aws:s3:::%[3]s/*"]}]}`,
		s3peer.Reader, strings.Join(actions, `","`), bucket)
	_, err := client.PutBucketPolicy(within(t, patience), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: &policy})
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
			_, _ = client.CreateBucket(within(t, patience), &s3.CreateBucketInput{Bucket: &bucket})
			_, err := client.PutObject(within(t, patience), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("jobs/" + name), Body: bytes.NewReader(body)})
			must(t, "plant "+name, err)
		}
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return opened(t, Options{URI: uriOf(endpoint, bucket+"/jobs")})
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
