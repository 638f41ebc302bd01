package s3

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckCondition: the service heeds If-None-Match.
	CheckCondition = storekit.CheckCondition
	// CheckVersions: a deleted record is gone.
	CheckVersions = "versions"
)

// heeds says which services heed If-None-Match.
const heeds = "use Amazon S3, or a version of the service that has conditional writes"

// largest is the size that no record has, of those of this version.
const largest = 128 << 10

// rows are the checks of the bucket's settings. Its lifecycle rules must delete no record, and not move it where it can't be read.
func (l *Ledger) rows() []storekit.Check {
	return []storekit.Check{
		{Name: store.CheckExpiry, Level: store.LevelFail, Ask: l.judgeRules, Standing: true},
		{Name: CheckVersions, Level: store.LevelWarn, Ask: l.judgeVersions, Standing: true},
	}
}

// lifecycle are the bucket's lifecycle rules, or none.
func (l *Ledger) lifecycle(ctx context.Context) ([]types.LifecycleRule, error) {
	out, err := insist(ctx, l, func() (*s3.GetBucketLifecycleConfigurationOutput, error) {
		return l.api.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &l.address.bucket})
	})
	if codeOf(err) == "NoSuchLifecycleConfiguration" || unknown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out.Rules, nil
}

func (l *Ledger) judgeRules(ctx context.Context) (string, error) {
	rules, err := l.lifecycle(ctx)
	if untold(err) {
		return storekit.Found("", storekit.Flaw{
			Check: store.CheckExpiry, Level: store.LevelWarn, Remedy: "make sure that none does, and grant s3:GetLifecycleConfiguration",
			What: fmt.Sprintf("the lifecycle rules of bucket %s can't be read (%s), so that they may delete the newest record", l.address.bucket, codeOf(err)),
		})
	}
	if err != nil {
		return "", err
	}
	return storekit.Found("no lifecycle rule deletes records, or moves them", unfit(rules, l.address.folder)...)
}

func (l *Ledger) judgeVersions(ctx context.Context) (string, error) {
	const gone = "what is trimmed is gone, now or by a lifecycle rule"
	l.versioned.Store(true) // unless the bucket says otherwise
	out, err := insist(ctx, l, func() (*s3.GetBucketVersioningOutput, error) {
		return l.api.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &l.address.bucket})
	})
	if untold(err) {
		return gone, nil
	}
	if err != nil {
		return "", err
	}
	l.versioned.Store(out.Status != "") // Suspended versioning notes deletions, too.
	if out.Status != types.BucketVersioningStatusEnabled {
		return gone, nil
	}
	rules, err := l.lifecycle(ctx)
	if err != nil && !untold(err) {
		return "", err
	}
	if slices.ContainsFunc(rules, func(r types.LifecycleRule) bool {
		return r.NoncurrentVersionExpiration != nil && covers(r, l.address.folder)
	}) {
		return gone, nil
	}
	return storekit.Found("", storekit.Flaw{
		Check: CheckVersions, Remedy: "add a lifecycle rule that deletes noncurrent versions",
		What: fmt.Sprintf("bucket %s has versioning, which keeps each record that is trimmed, and each state of a presence", l.address.bucket),
	})
}

// noted is why no deletion can be tried.
func (l *Ledger) noted() string {
	if l.versioned.Load() {
		return "the deletion of what isn't there would be noted in a bucket with versioning"
	}
	return ""
}

// grant is the right that a check is about.
func (l *Ledger) grant(check string) string {
	of := "arn:aws:s3:::" + l.address.bucket + "/" + l.address.folder + "*"
	switch check {
	case store.CheckLedger:
		return "grant s3:ListBucket on the bucket, or use other credentials"
	case store.CheckRead:
		return "grant s3:ListBucket on the bucket, and s3:GetObject on " + of
	case store.CheckAppend:
		return "grant s3:PutObject on " + of
	}
	return "grant s3:DeleteObject on " + of + ", and s3:PutObject for the roster"
}

// untold reports whether an error says that the service won't tell, or can't.
func untold(err error) bool { return statusOf(err) == http.StatusForbidden || unknown(err) }

// unknown reports whether an error says that the service doesn't know what was asked, and so has nothing of the kind.
func unknown(err error) bool {
	return statusOf(err) == http.StatusNotImplemented || statusOf(err) == http.StatusMethodNotAllowed || codeOf(err) == "NotImplemented"
}

// unfit are the lifecycle rules that delete records, or move them where they can't be read.
func unfit(rules []types.LifecycleRule, folder string) (flaws []storekit.Flaw) {
	for _, r := range rules {
		if !covers(r, folder) {
			continue
		}
		flaw := func(format string, args ...any) {
			flaws = append(flaws, storekit.Flaw{
				Check: store.CheckExpiry, What: fmt.Sprintf("the lifecycle rule %.80q ", aws.ToString(r.ID)) + fmt.Sprintf(format, args...),
				Remedy: "limit it to a prefix without the ledger's, or use another bucket",
			})
		}
		if e := r.Expiration; e != nil && (e.Days != nil || e.Date != nil) {
			flaw("deletes records, and would delete the newest")
		}
		for _, t := range r.Transitions {
			if t.StorageClass == types.TransitionStorageClassGlacier || t.StorageClass == types.TransitionStorageClassDeepArchive {
				flaw("moves records to %s, where they can't be read", t.StorageClass)
			}
		}
	}
	return flaws
}

// covers reports whether a rule is in force for records.
func covers(r types.LifecycleRule, folder string) bool {
	prefix := aws.ToString(r.Prefix) //nolint:staticcheck // rules of the old form are still in force
	var above int64
	tagged := false
	if f := r.Filter; f != nil {
		if f.Prefix != nil {
			prefix = *f.Prefix
		}
		above, tagged = aws.ToInt64(f.ObjectSizeGreaterThan), f.Tag != nil
		if a := f.And; a != nil {
			prefix, above, tagged = aws.ToString(a.Prefix), aws.ToInt64(a.ObjectSizeGreaterThan), len(a.Tags) > 0
		}
	}
	records := folder + "ledger/"
	return r.Status == types.ExpirationStatusEnabled && !tagged && above < largest &&
		(strings.HasPrefix(records, prefix) || strings.HasPrefix(prefix, records))
}
