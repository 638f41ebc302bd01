package s3

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
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
	*storekit.Bucket

	address   address
	clock     clock.Clock
	secrets   storekit.Secrets
	cache     *aws.CredentialsCache // nil if credentials are asked for each request
	transport Transport
	idle      func() // Closes connections; nil if they are the caller's.

	v4  atomic.Pointer[v4.Signer]
	api *s3.Client
	// versioned says that the bucket notes a deletion, also that of what isn't there, as far as the newest look at it has shown.
	versioned atomic.Bool
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
)

// connect makes the client, and the ledger over it.
func (l *Ledger) connect(from aws.CredentialsProvider, with func(set func(*s3.Options)) *s3.Client, o Options) {
	l.cache, _ = from.(*aws.CredentialsCache)
	l.v4.Store(newV4())
	l.api = with(func(c *s3.Options) {
		c.AppID = cmp.Or(o.AppName, "slotlease")
		c.HTTPClient = wire{l}
		c.HTTPSignerV4 = signer{l}
		c.Credentials = identified{from}
		// The engine knows the deadline, and decides whether to try again.
		c.Retryer, c.RetryMaxAttempts = aws.NopRetryer{}, 0
		c.DisableClockSkewCorrection = true
		// The checksums of records are given with them.
		c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		c.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		c.UseAccelerate, c.UseARNRegion = false, false
		c.DisableMultiRegionAccessPoints = true
	})
	l.Bucket = storekit.OnBucket(storekit.BucketOptions{
		Store: "s3", URI: scheme + l.address.bucket + "/" + l.address.folder, Service: "the service", Kind: "bucket", Name: l.address.bucket,
		Folder: l.address.folder, Endpoint: l.address.endpoint, Skew: l.address.skew, ReadOnly: o.ReadOnly, Secrets: l.secrets, Clock: l.clock,
		Objects: objects{l}, Head: l.head, Make: l.create, Meaning: l.meaning, Reply: replyOf, SentHeader: headerDate, SentForm: amzDate,
		Rows: l.rows(), Grant: l.grant, Heeds: heeds, Noted: l.noted, Durability: l.durability(), Script: l.script(),
	})
}

// create creates the bucket.
func (l *Ledger) create(ctx context.Context) error {
	in := &s3.CreateBucketInput{Bucket: &l.address.bucket}
	if region := l.api.Options().Region; region != defaultRegion && l.address.endpoint == nil {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	_, err := insist(ctx, l, func() (*s3.CreateBucketOutput, error) { return l.api.CreateBucket(ctx, in) })
	if code := codeOf(err); code == "BucketAlreadyOwnedByYou" || code == "OperationAborted" {
		err = nil // Another worker was first.
	}
	return err
}

// head asks for nothing but whether the bucket is there.
func (l *Ledger) head(ctx context.Context) error {
	_, err := insist(ctx, l, func() (*s3.HeadBucketOutput, error) {
		return l.api.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &l.address.bucket})
	})
	return err
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
	switch {
	case err == nil && aws.ToString(out.ETag) == "":
		return storekit.ErrForeign
	case condition != nil && statusOf(err) == http.StatusNotImplemented:
		return storekit.Flaw{Check: CheckCondition, What: "the service doesn't know If-None-Match", Remedy: heeds}.Refuse()
	}
	return err
}

// Create puts an object with If-None-Match. While the service refuses it because of another request in progress
// (409), it tries again: a second try can't store it twice. If that is refused, the outcome of the first still counts.
func (o objects) Create(ctx context.Context, name string, body []byte) error {
	var unknown error
	for n := 1; ; n++ {
		err := o.put(ctx, name, body, aws.String("*"))
		if unknown != nil && err != nil && o.meaning(err).NotStored {
			return unknown
		}
		if n == contended || statusOf(err) != http.StatusConflict || !storekit.Pause(ctx, o.clock, contention) {
			return err
		}
		unknown = err
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
		return nil, store.ErrNotFound
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
			return storekit.ErrForeign
		}
		for _, c := range page.Contents {
			name := aws.ToString(c.Key)
			if name <= after || !strings.HasPrefix(name, prefix) {
				return fmt.Errorf("the service lists %.120q after %.120q: not in the order of names, or not what was asked for", name, after)
			}
			if after = name; !visit(storekit.Object{Name: name, Size: aws.ToInt64(c.Size)}) {
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
			return nil, storekit.ErrForeign
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
	err := o.head(ctx)
	return stamp(), err
}

func (o objects) Close() error {
	if o.idle != nil {
		o.idle()
	}
	return nil
}
