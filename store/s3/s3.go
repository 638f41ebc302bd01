package s3

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// listPage is how many names one list has at most.
	listPage = 1000
	// contended is how often an append is tried that the service refuses for another one in progress, and
	// contention the wait between.
	contended  = 4
	contention = 50 * time.Millisecond
	// asked is how often is tried what the service fails to do, as it asks for itself: a read, a deletion, and each
	// request of Init, which may be sent twice.
	asked = 4
)

// Ledger keeps ledgers in a bucket. It is safe for concurrent use.
type Ledger struct {
	*storekit.ObjectLedger

	address   address
	skew      time.Duration
	readOnly  bool
	clock     clock.Clock
	secrets   storekit.Secrets
	transport Transport
	idle      func() // Closes connections; nil if they are the caller's.

	dating  *storekit.Dating
	api     *s3.Client
	runner  *storekit.Runner
	fitness *storekit.Fitness
	// proved says that the service keeps two objects from having one name.
	proved atomic.Bool
	// warning is what the newest check found that somebody should see to.
	warning atomic.Pointer[string]
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
)

// String names the bucket and the folder.
func (l *Ledger) String() string { return scheme + l.address.bucket + "/" + l.address.folder }

// connect makes the client, and the ledger over it.
func (l *Ledger) connect(cfg aws.Config, app string) {
	l.dating = storekit.NewDating(l.clock)
	l.api = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.BaseEndpoint = nil
		if u := l.address.endpoint; u != nil {
			o.BaseEndpoint = aws.String(u.Scheme + "://" + u.Host)
		}
		o.UsePathStyle = l.address.pathStyle
		o.AppID = app
		o.HTTPClient = wire{l}
		o.HTTPSignerV4 = newSigner(l.dating)
		o.Credentials = identified{cfg.Credentials}
		// The engine knows the deadline, and decides whether to try again.
		o.Retryer = aws.NopRetryer{}
		o.DisableClockSkewCorrection = true
		// The checksums of records are given with them.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.UseAccelerate, o.UseARNRegion = false, false
		o.DisableMultiRegionAccessPoints = true
	})
	l.fitness = storekit.NewFitness(l.clock, l.check)
	l.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "s3", Secrets: l.secrets, Meaning: l.meaning, Fitness: l.fitness})
	l.ObjectLedger = storekit.OnObjects(storekit.ObjectsOptions{
		Objects: objects{l}, Runner: l.runner, Folder: l.address.folder, Create: l.create, Fitness: l.fitness,
	})
}

// create creates the bucket unless it exists, or can't be seen.
func (l *Ledger) create(ctx context.Context) error {
	if l.readOnly {
		return nil
	}
	_, err := insist(ctx, l, func() (*s3.HeadBucketOutput, error) { return l.headBucket(ctx) })
	if err == nil || !errors.Is(l.meaning(err).Is, store.ErrMissing) {
		return err
	}
	in := &s3.CreateBucketInput{Bucket: &l.address.bucket}
	if region := l.api.Options().Region; region != defaultRegion && l.address.endpoint == nil {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	_, err = insist(ctx, l, func() (*s3.CreateBucketOutput, error) { return l.api.CreateBucket(ctx, in) })
	if code := codeOf(err); code == "BucketAlreadyOwnedByYou" || code == "OperationAborted" {
		err = nil // Another worker was first.
	}
	return err
}

// head asks for nothing but whether the bucket is there.
func (l *Ledger) head(ctx context.Context) (*s3.HeadBucketOutput, error) {
	return ask(l, func() (*s3.HeadBucketOutput, error) { return l.headBucket(ctx) })
}

func (l *Ledger) headBucket(ctx context.Context) (*s3.HeadBucketOutput, error) {
	return l.api.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &l.address.bucket})
}

// objects are those of the bucket.
type objects struct{ *Ledger }

var (
	_ storekit.Objects = objects{}
	_ storekit.Folders = objects{}
)

func (o objects) put(ctx context.Context, name string, body []byte, condition *string) error {
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body)))
	out, err := ask(o.Ledger, func() (*s3.PutObjectOutput, error) {
		return o.api.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &o.address.bucket, Key: &name, Body: bytes.NewReader(body), IfNoneMatch: condition,
			ContentType: aws.String("application/json"), ChecksumCRC32: &sum,
		})
	})
	if err == nil && aws.ToString(out.ETag) == "" {
		err = errForeign
	}
	return err
}

// errForeign is the error of a success that has not got what each service says with it: perhaps a portal or a proxy has
// answered in its place. Nothing is known by it.
var errForeign = errors.New("the reply is none of the service: is that its endpoint, and no proxy before it?")

// Create puts an object with If-None-Match. While the service refuses it because of another request in progress
// (409), it tries again: a second try can't store it twice. If that is refused, the outcome of the first still counts.
func (o objects) Create(ctx context.Context, name string, body []byte) error {
	var unknown error
	for n := 1; ; n++ {
		err := o.put(ctx, name, body, aws.String("*"))
		if unknown != nil && err != nil && o.meaning(err).NotStored {
			return unknown
		}
		if n == contended || statusOf(err) != statusConflict {
			return err
		}
		unknown = err
		timer := o.clock.Timer(contention)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

func (o objects) Replace(ctx context.Context, name string, body []byte) error {
	return o.put(ctx, name, body, nil)
}

func (o objects) Read(ctx context.Context, name string) ([]byte, error) {
	out, err := insist(ctx, o.Ledger, func() (*s3.GetObjectOutput, error) {
		return o.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.address.bucket, Key: &name})
	})
	if codeOf(err) == "NoSuchKey" {
		return nil, absent{err}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Body.Close() }()
	return io.ReadAll(io.LimitReader(out.Body, storekit.MaxDocument+1))
}

func (o objects) List(ctx context.Context, prefix, after string, hint int, visit func(storekit.Object) bool) error {
	if hint < 1 || hint > listPage {
		hint = listPage
	}
	for {
		in := &s3.ListObjectsV2Input{Bucket: &o.address.bucket, Prefix: &prefix, MaxKeys: aws.Int32(int32(hint))}
		if after != "" {
			in.StartAfter = &after
		}
		page, err := insist(ctx, o.Ledger, func() (*s3.ListObjectsV2Output, error) { return o.api.ListObjectsV2(ctx, in) })
		if err != nil {
			return err
		}
		if aws.ToString(page.Name) == "" {
			return errForeign
		}
		for _, c := range page.Contents {
			name := aws.ToString(c.Key)
			if name <= after || !strings.HasPrefix(name, prefix) {
				return fmt.Errorf("the service lists %.120q after %.120q: not in the order of names, or not what was asked for", name, after)
			}
			if after = name; !visit(storekit.Object{Name: name}) {
				return nil
			}
		}
		if !aws.ToBool(page.IsTruncated) || len(page.Contents) == 0 {
			return nil
		}
		hint = listPage
	}
}

// Folders lists what a delimiter makes of names.
func (o objects) Folders(ctx context.Context, prefix string) (names []string, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &o.address.bucket, Prefix: &prefix, Delimiter: aws.String("/")}
	for {
		page, err := insist(ctx, o.Ledger, func() (*s3.ListObjectsV2Output, error) { return o.api.ListObjectsV2(ctx, in) })
		if err != nil {
			return nil, err
		}
		if aws.ToString(page.Name) == "" {
			return nil, errForeign
		}
		for _, p := range page.CommonPrefixes {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), prefix), "/"))
		}
		in.ContinuationToken = page.NextContinuationToken
		if !aws.ToBool(page.IsTruncated) || in.ContinuationToken == nil {
			return names, nil
		}
	}
}

// Delete removes an object. The service doesn't say whether it was there.
func (o objects) Delete(ctx context.Context, name string) (bool, error) {
	_, err := insist(ctx, o.Ledger, func() (*s3.DeleteObjectOutput, error) {
		return o.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &o.address.bucket, Key: &name})
	})
	return err == nil, err
}

// Now asks whether the bucket is there.
func (o objects) Now(ctx context.Context) (store.Stamp, error) {
	ctx, stamp := storekit.Noting(ctx)
	_, err := o.head(ctx)
	return stamp(), err
}

func (o objects) Close() error {
	if o.idle != nil {
		o.idle()
	}
	return nil
}
