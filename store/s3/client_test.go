package s3

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// unplugged fails each request that it gets, and counts them.
type unplugged struct{ asked atomic.Int64 }

func (f *unplugged) Do(*http.Request) (*http.Response, error) {
	f.asked.Add(1)
	return nil, errors.New("the network is gone")
}

// The client tries ten times, and has middleware.
func TestTheLedgersRequestsAreItsOwnByAClientToo(t *testing.T) {
	t.Parallel()
	net := &unplugged{}
	patient := retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 10 })
	c := s3.New(s3.Options{
		Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: net, Retryer: patient, RetryMaxAttempts: 10,
	})
	l := opened(t, Options{URI: "s3://bucket/jobs", Client: c})
	err := objects{l}.Create(within(t), "jobs/a", []byte("{}"))
	if n := net.asked.Load(); n != 1 || err == nil || !strings.Contains(err.Error(), "the network is gone") {
		t.Errorf("Create() = %v after %d requests, want the error after one", err, n)
	}
	if err := l.Append(within(t), storetest.Grant("job", 1)); err == nil || errors.Is(err, store.ErrConflict) {
		t.Errorf("Append() = %v, want that the outcome is unknown", err)
	}
}

func TestCloseLeavesTheClientOpen(t *testing.T) {
	t.Parallel()
	c, bucket := past(s3peer.Shared(t)), newBucket()
	l := ready(t, Options{URI: scheme + bucket + "/jobs", Client: c})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	must(t, "Close()", l.Close(t.Context()))
	_, err := c.HeadBucket(within(t), &s3.HeadBucketInput{Bucket: &bucket})
	must(t, "HeadBucket() by the client", err)
}

func TestAClientGoesWithNothingThatItHas(t *testing.T) {
	t.Parallel()
	c := past("http://127.0.0.1:1")
	for name, o := range map[string]Options{
		"an endpoint": {URI: "s3://bucket/jobs?endpoint=https://minio.example", Client: c},
		"a region":    {URI: "s3://bucket/jobs?region=eu-central-1", Client: c},
		"credentials": {URI: "s3://bucket/jobs", Client: c, Credentials: aws.AnonymousCredentials{}},
		"a transport": {URI: "s3://bucket/jobs", Client: c, Transport: http.DefaultClient},
	} {
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "without Client, which has its own") {
			t.Errorf("Open() of a client with %s = %v, want an error", name, err)
		}
	}
}

// rotating gives a key without an end, which counts until the service refuses it.
type rotating struct {
	secret atomic.Pointer[string]
	asked  atomic.Int64
}

func (r *rotating) rotate(secret string) { r.secret.Store(&secret) }

func (r *rotating) Retrieve(context.Context) (aws.Credentials, error) {
	r.asked.Add(1)
	return aws.Credentials{AccessKeyID: s3peer.ID, SecretAccessKey: *r.secret.Load()}, nil
}

func TestAKeyThatIsReplacedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	endpoint := s3peer.Shared(t)
	for name, options := range map[string]func(p aws.CredentialsProvider, bucket string) Options{
		"credentials": func(p aws.CredentialsProvider, bucket string) Options {
			return Options{URI: uriOf(endpoint, bucket+"/jobs"), Credentials: p}
		},
		"a client": func(p aws.CredentialsProvider, bucket string) Options {
			o := past(endpoint).Options()
			o.Credentials = p
			return Options{URI: scheme + bucket + "/jobs", Client: s3.New(o)}
		},
	} {
		p := &rotating{}
		p.rotate("that of before")
		bucket := newBucket()
		ready(t, Options{URI: uriOf(endpoint, bucket)})
		l := opened(t, options(p, bucket))
		for range 2 {
			if err := l.Append(within(t), storetest.Grant("job", 1)); !errors.Is(err, store.ErrDenied) || !errors.Is(err, store.ErrNotStored) {
				t.Errorf("by %s, Append() with the former key = %v, want ErrDenied, and that nothing was stored", name, err)
			}
		}
		p.rotate(s3peer.Secret)
		err := l.Append(within(t), storetest.Grant("job", 1))
		if errors.Is(err, store.ErrDenied) { // A check in progress may have signed with the former key a moment ago.
			err = l.Append(within(t), storetest.Grant("job", 1))
		}
		must(t, name+": Append() with the new key", err)
		asked := p.asked.Load()
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", 2)))
		if n := p.asked.Load(); name == "credentials" && n != asked {
			t.Errorf("the key was asked for %d times although it is accepted, want %d", n, asked)
		}
	}
}
