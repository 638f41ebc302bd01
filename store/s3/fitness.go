package s3

import (
	"context"
	"errors"
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
	CheckCondition = "condition"
	// CheckVersions: a deleted record is gone.
	CheckVersions = "versions"
)

// probeName is the name, in the ledger's folder, of an object that shows whether the service heeds If-None-Match. It
// is beside the worker types, none of which can have this name, so that who may append may write it.
const probeName = "ledger/-probe"

// largest is the size that no record has, of those of this version.
const largest = 128 << 10

// check finds out whether the bucket can keep a ledger.
func (l *Ledger) check(ctx context.Context) error {
	found, err := l.inspect(ctx)
	if err != nil {
		return err
	}
	if len(found.unfit) > 0 {
		return found.unfit[0].Refuse()
	}
	var warnings []string
	for _, f := range found.lesser {
		warnings = append(warnings, f.Error())
	}
	text := strings.Join(warnings, "; ")
	l.warning.Store(&text)
	if l.readOnly {
		return nil
	}
	return l.prove(ctx)
}

// Warning is what somebody should see to: versions that keep what is trimmed, and lifecycle rules that can't be read.
func (l *Ledger) Warning() string {
	if text := l.warning.Load(); text != nil {
		return *text
	}
	return ""
}

// settings are those of a bucket.
type settings struct {
	// unfit are the flaws that make it unfit for a ledger.
	unfit, lesser []storekit.Flaw
	// versioned says that a deletion is noted, also that of what isn't there.
	versioned bool
}

// inspect asks for the settings of the bucket.
func (l *Ledger) inspect(ctx context.Context) (found settings, err error) {
	rules, err := insist(ctx, l, func() (*s3.GetBucketLifecycleConfigurationOutput, error) {
		return l.api.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &l.address.bucket})
	})
	kept := true // what a delete makes noncurrent
	switch {
	case err == nil:
		found.unfit = judgeRules(rules.Rules, l.address.folder)
		kept = !slices.ContainsFunc(rules.Rules, func(r types.LifecycleRule) bool {
			return r.NoncurrentVersionExpiration != nil && covers(r, l.address.folder)
		})
	case codeOf(err) == "NoSuchLifecycleConfiguration", unknown(err):
	case untold(err):
		found.lesser = append(found.lesser, storekit.Flaw{
			Check: store.CheckExpiry, What: fmt.Sprintf("the lifecycle rules of bucket %s can't be read (%s), so that they may delete the newest record", l.address.bucket, codeOf(err)),
			Remedy: "make sure that none does, and grant s3:GetLifecycleConfiguration",
		})
	default:
		return found, err
	}
	versions, err := insist(ctx, l, func() (*s3.GetBucketVersioningOutput, error) {
		return l.api.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &l.address.bucket})
	})
	switch {
	case err == nil && versions.Status == types.BucketVersioningStatusEnabled && kept:
		found.lesser = append(found.lesser, storekit.Flaw{
			Check: CheckVersions, What: fmt.Sprintf("bucket %s has versioning, which keeps each record that is trimmed, and each state of a presence", l.address.bucket),
			Remedy: "add a lifecycle rule that deletes noncurrent versions",
		})
	case err != nil && !untold(err):
		return found, err
	}
	found.versioned = versions == nil || versions.Status != "" // suspended versioning notes deletions, too
	return found, nil
}

// untold reports whether an error says that the service won't tell, or can't.
func untold(err error) bool { return statusOf(err) == http.StatusForbidden || unknown(err) }

// unknown reports whether an error says that the service doesn't know what was asked, and so has nothing of the kind.
func unknown(err error) bool {
	return statusOf(err) == http.StatusNotImplemented || statusOf(err) == http.StatusMethodNotAllowed || codeOf(err) == "NotImplemented"
}

// judgeRules are the lifecycle rules that delete records, or move them where they can't be read.
func judgeRules(rules []types.LifecycleRule, folder string) (flaws []storekit.Flaw) {
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

// prove finds out by trying whether the service heeds If-None-Match, once for each handle. Who may not write finds out
// nothing, and can't append either.
func (l *Ledger) prove(ctx context.Context) error {
	if l.proved.Load() {
		return nil
	}
	err := l.tryTwice(ctx)
	if err == nil {
		l.proved.Store(true)
		return nil
	}
	if errors.Is(l.meaning(err).Is, store.ErrDenied) {
		return nil
	}
	return err
}

// tryTwice puts an object of one name twice, unless it is there.
func (l *Ledger) tryTwice(ctx context.Context) error {
	name := l.address.folder + probeName
	for range 2 {
		_, err := insist(ctx, l, func() (none struct{}, err error) {
			return none, objects{l}.Create(ctx, name, []byte(`{}`))
		})
		switch {
		case statusOf(err) == http.StatusPreconditionFailed:
			return nil
		case statusOf(err) == http.StatusNotImplemented:
			return ignorant("doesn't know If-None-Match").Refuse()
		case err != nil:
			return err
		}
	}
	return ignorant("ignores If-None-Match: it stored two objects under one name, one in place of the other").Refuse()
}

func ignorant(what string) storekit.Flaw {
	return storekit.Flaw{Check: CheckCondition, What: "the service " + what, Remedy: "use Amazon S3, or a version of the service that has conditional writes"}
}
