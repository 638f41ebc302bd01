package s3

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// examined is what an examination of a ledger finds. It must store nothing.
func examined(t *testing.T, l *Ledger) []store.Finding {
	t.Helper()
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	return found
}

func TestAFaultOfABucketIsFoundAndHidesNoOther(t *testing.T) {
	t.Parallel()
	endpoint := s3peer.Shared(t)
	client := past(endpoint)
	// sound is a bucket with which nothing is wrong, if it had lifecycle rules.
	sound := func(req *http.Request) *http.Response {
		if asks(req, "lifecycle") {
			return fault(404, "NoSuchLifecycleConfiguration")
		}
		return nil
	}
	for name, c := range map[string]struct {
		hook  func(req *http.Request) *http.Response
		id    string
		gone  bool
		check string
		level store.Level
		says  string
		also  []string
	}{
		"no lifecycle rules known": {check: store.CheckExpiry, level: store.LevelOK, says: "no lifecycle rule deletes records"},
		"nothing wrong":            {hook: sound, check: store.CheckConnection, level: store.LevelOK, says: "the service answered in"},
		"a rule": {hook: func(req *http.Request) *http.Response {
			if asks(req, "lifecycle") {
				return reply(200, rule(enabled+`<Filter></Filter>`+expiration))
			}
			return nil
		}, check: store.CheckExpiry, level: store.LevelFail, says: `the lifecycle rule "old" deletes records, and would delete the newest → limit it to a prefix`},
		"rules that can't be read": {hook: func(req *http.Request) *http.Response {
			if asks(req, "lifecycle") {
				return fault(403, "AccessDenied")
			}
			return nil
		}, check: store.CheckExpiry, level: store.LevelWarn, says: "→ make sure that none does, and grant s3:GetLifecycleConfiguration"},
		"versions": {hook: func(req *http.Request) *http.Response {
			if asks(req, "versioning") {
				return reply(200, `<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>`)
			}
			return sound(req)
		}, check: CheckVersions, level: store.LevelWarn, says: "→ add a lifecycle rule that deletes noncurrent versions", also: []string{store.CheckTrim, store.CheckRoster}},
		"If-None-Match ignored": {hook: func(req *http.Request) *http.Response {
			if conditional(req) {
				return reply(200, "", "ETag", `"x"`)
			}
			return sound(req)
		}, check: CheckCondition, level: store.LevelFail, says: "one in place of the other → use Amazon S3"},
		"a reader":         {hook: sound, id: s3peer.Reader, check: store.CheckAppend, level: store.LevelFail, says: "→ grant s3:PutObject on arn:aws:s3:::test-", also: []string{store.CheckTrim, store.CheckRoster, CheckCondition, store.CheckExpiry}},
		"no bucket":        {hook: sound, gone: true, check: store.CheckLedger, level: store.LevelFail, says: "there is no bucket test-", also: []string{store.CheckExpiry, CheckVersions, CheckCondition, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster}},
		"no rights at all": {hook: sound, id: "AKIDNOBODY", check: store.CheckLedger, level: store.LevelFail, says: "→ grant s3:ListBucket on the bucket, or use other credentials", also: []string{store.CheckExpiry, CheckVersions, CheckCondition, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket := newBucket()
			if !c.gone {
				l := ready(t, Options{URI: uriOf(endpoint, bucket+"/jobs")})
				must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
				grant(t, client, bucket, "s3:GetObject", "s3:ListBucket")
			}
			before := contents(t, client, bucket)
			o := Options{URI: uriOf(endpoint, bucket+"/jobs"), Transport: &hooked{Hook: c.hook}}
			if c.id != "" {
				o.Getenv = environment(c.id)
			}
			found := examined(t, opened(t, o))
			documenttest.Finds(t, found, c.check, c.level, c.says)
			documenttest.FindsNoMore(t, found, append(c.also, c.check)...)
			documenttest.Equal(t, "checks", len(found), 11)
			documenttest.Equal(t, "what is stored after an examination", contents(t, client, bucket), before)
		})
	}
}

// contents are the names in a bucket, and when they were written.
func contents(t *testing.T, client *s3.Client, bucket string) (text string) {
	t.Helper()
	page, err := client.ListObjectsV2(within(t), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		return ""
	}
	for _, o := range page.Contents {
		text += *o.Key + " " + o.LastModified.String() + "\n"
	}
	return text
}
