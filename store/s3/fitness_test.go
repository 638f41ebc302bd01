package s3

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// rule is a lifecycle configuration of one rule.
func rule(parts string) string {
	return `<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Rule><ID>old</ID>` + parts + `</Rule></LifecycleConfiguration>`
}

const (
	enabled    = `<Status>Enabled</Status>`
	expiration = `<Expiration><Days>30</Days></Expiration>`
)

// The server knows no lifecycle rules, so that its answer is replaced.
func TestLifecycleRulesThatDeleteOrMoveRecordsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, refused string }{
		"for all objects":                    {enabled + `<Filter></Filter>` + expiration, "deletes records, and would delete the newest"},
		"in the old form":                    {enabled + `<Prefix></Prefix>` + expiration, "deletes records"},
		"for the folder":                     {enabled + `<Filter><Prefix>jobs/</Prefix></Filter>` + expiration, "deletes records"},
		"for one worker type":                {enabled + `<Filter><Prefix>jobs/ledger/mail/</Prefix></Filter>` + expiration, "deletes records"},
		"for small ones":                     {enabled + `<Filter><And><Prefix>j</Prefix><ObjectSizeGreaterThan>100</ObjectSizeGreaterThan></And></Filter>` + expiration, "deletes records"},
		"on a day":                           {enabled + `<Filter></Filter><Expiration><Date>2030-01-01T00:00:00Z</Date></Expiration>`, "deletes records"},
		"to an archive":                      {enabled + `<Filter></Filter><Transition><Days>1</Days><StorageClass>DEEP_ARCHIVE</StorageClass></Transition>`, "moves records to DEEP_ARCHIVE, where they can't be read"},
		"to another class":                   {enabled + `<Filter></Filter><Transition><Days>30</Days><StorageClass>STANDARD_IA</StorageClass></Transition>`, ""},
		"that is off":                        {`<Status>Disabled</Status><Filter></Filter>` + expiration, ""},
		"for another folder":                 {enabled + `<Filter><Prefix>job/</Prefix></Filter>` + expiration, ""},
		"for the roster":                     {enabled + `<Filter><Prefix>jobs/roster/</Prefix></Filter>` + expiration, ""},
		"for a tag":                          {enabled + `<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>` + expiration, ""},
		"for a tag and a prefix":             {enabled + `<Filter><And><Prefix>jobs/</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>` + expiration, ""},
		"for what is larger than any record": {enabled + `<Filter><ObjectSizeGreaterThan>131072</ObjectSizeGreaterThan></Filter>` + expiration, ""},
		"for versions":                       {enabled + `<Filter></Filter><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := hookedLedger(t, Options{}, func(req *http.Request) *http.Response {
				if asks(req, "lifecycle") {
					return reply(200, rule(c.rule))
				}
				return nil
			})
			err := l.Append(within(t), storetest.Grant("job", 1))
			if c.refused == "" {
				must(t, "Append()", err)
				return
			}
			documenttest.Sentinel(t, "Append()", err, store.ErrRefused)
			documenttest.Says(t, "Append()", err, store.ErrNotStored, `the lifecycle rule "old" `+c.refused)
			documenttest.Is(t, "Init()", l.Init(within(t)), store.ErrRefused)
		})
	}
}

func TestRulesThatCannotBeReadAreAWarning(t *testing.T) {
	t.Parallel()
	var answer func() *http.Response
	l, _ := hookedLedger(t, Options{}, func(req *http.Request) *http.Response {
		if asks(req, "lifecycle") {
			return answer()
		}
		return nil
	})
	for code, want := range map[string]string{"AccessDenied": "can't be read (AccessDenied)", "NotImplemented": "", "NoSuchLifecycleConfiguration": ""} {
		answer = func() *http.Response {
			return fault(map[string]int{"AccessDenied": 403, "NotImplemented": 501, "NoSuchLifecycleConfiguration": 404}[code], code)
		}
		must(t, "Init()", l.Init(within(t)))
		if got := l.Warning(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("Warning() after %s = %q, want %q", code, got, want)
		}
	}
	answer = func() *http.Response { return fault(500, "InternalError") }
	documenttest.Sentinel(t, "Init() with a service that fails", l.Init(within(t)), nil)
}

func TestVersionsAreAWarningUnlessARuleDeletesThem(t *testing.T) {
	t.Parallel()
	endpoint := s3peer.Shared(t)
	bucket := newBucket()
	ready(t, Options{URI: uriOf(endpoint, bucket)})
	_, err := past(endpoint).PutBucketVersioning(within(t), &s3.PutBucketVersioningInput{
		Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	must(t, "PutBucketVersioning()", err)
	rules := func() *http.Response { return fault(404, "NoSuchLifecycleConfiguration") }
	h := &hooked{Hook: func(req *http.Request) *http.Response {
		if asks(req, "lifecycle") {
			return rules()
		}
		return nil
	}}
	l := opened(t, Options{URI: uriOf(endpoint, bucket), Transport: h})
	must(t, "Init()", l.Init(within(t)))
	if got := l.Warning(); !strings.Contains(got, "has versioning, which keeps each record that is trimmed") {
		t.Errorf("Warning() = %q, want that of versioning", got)
	}
	// What was deleted isn't listed, and what is there keeps its key, as without versions.
	for seq := int64(1); seq <= 3; seq++ {
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq)))
	}
	if n, err := l.Trim(within(t), "job", 3); n != 2 || err != nil {
		t.Errorf("Trim() = %d, %v, want 2", n, err)
	}
	documenttest.Is(t, "Append() of a key that is there", l.Append(within(t), storetest.Grant("job", 3)), store.ErrConflict)
	if got, _, err := l.Tail(within(t), "job", 9); err != nil || len(got) != 1 || got[0].Seq != 3 {
		t.Errorf("Tail() after a trim = %+v, %v, want record 3 alone", got, err)
	}
	rules = func() *http.Response {
		return reply(200, rule(enabled+`<Filter></Filter><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>`))
	}
	must(t, "Init()", l.Init(within(t)))
	documenttest.Equal(t, "Warning()", l.Warning(), "")
}

func TestAServiceThatDoesNotKnowIfNoneMatchIsRefused(t *testing.T) {
	t.Parallel()
	l, _ := hookedLedger(t, Options{}, func(req *http.Request) *http.Response {
		if !conditional(req) {
			return nil
		}
		return fault(501, "NotImplemented")
	})
	err := l.Append(within(t), storetest.Grant("job", 1))
	documenttest.Says(t, "Append()", err, store.ErrRefused, "doesn't know If-None-Match")
	documenttest.Is(t, "Append()", err, store.ErrNotStored)
}
