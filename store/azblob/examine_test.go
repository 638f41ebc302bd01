package azblob

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestAFaultOfAContainerIsFoundAndHidesNoOther(t *testing.T) {
	t.Parallel()
	endpoint := azuritepeer.Shared(t)
	// sound is an account without a second region, which Azurite's has.
	sound := func(req *http.Request) *http.Response {
		if ofAccount(req) {
			return reply(200, "", "X-Ms-Sku-Name", "Standard_ZRS")
		}
		return nil
	}
	all := []string{CheckRegions, CheckImmutability, CheckCondition, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster}
	for name, c := range map[string]struct {
		hook   func(req *http.Request) *http.Response
		reader bool
		wrong  bool
		gone   bool
		check  string
		level  store.Level
		says   string
		also   []string
	}{
		"nothing wrong":   {hook: sound, check: store.CheckConnection, level: store.LevelOK, says: "the account slotlease answered in"},
		"a second region": {hook: func(*http.Request) *http.Response { return nil }, check: CheckRegions, level: store.LevelWarn, says: "copied to a second region with delay (Standard_RAGRS): a failover loses the newest records, and leases among them → use an account with ZRS"},
		"a policy": {hook: func(req *http.Request) *http.Response {
			if ofContainer(req) {
				return reply(200, "", "X-Ms-Has-Immutability-Policy", "true")
			}
			return sound(req)
		}, check: CheckImmutability, level: store.LevelWarn, says: "→ use a container without"},
		"If-None-Match ignored": {hook: func(req *http.Request) *http.Response {
			if conditional(req) {
				return reply(201, "")
			}
			return sound(req)
		}, check: CheckCondition, level: store.LevelFail, says: "the service ignores If-None-Match"},
		"lifecycle policies": {hook: sound, check: store.CheckExpiry, level: store.LevelSkip, says: "none may delete blobs of this container"},
		"a reader":           {hook: sound, reader: true, check: store.CheckAppend, level: store.LevelFail, says: "→ grant the role Storage Blob Data Contributor", also: []string{store.CheckTrim, store.CheckRoster, CheckCondition}},
		"no container":       {hook: sound, gone: true, check: store.CheckLedger, level: store.LevelFail, says: "there is no container test-", also: all},
		"a wrong key":        {hook: sound, wrong: true, check: store.CheckLedger, level: store.LevelFail, says: "→ use another key, or grant", also: all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := newContainer()
			if !c.gone {
				l := ready(t, Options{URI: uriOf(endpoint, id+"/jobs")})
				must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
			}
			client := past(t, endpoint, id)
			before := contents(t, client)
			o := Options{URI: uriOf(endpoint, id+"/jobs"), Transport: &hooked{Hook: c.hook}}
			switch {
			case c.reader:
				o.Getenv = environment("AZURE_STORAGE_SAS_TOKEN", signed(t, id, "rl"))
			case c.wrong:
				o.Key = "b3RoZXI="
			}
			found, err := opened(t, o).Examine(within(t))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, c.level, c.says)
			documenttest.FindsNoMore(t, found, append(c.also, c.check, store.CheckExpiry)...)
			documenttest.Equal(t, "checks", len(found), 12)
			documenttest.Equal(t, "what is stored after an examination", contents(t, client), before)
		})
	}
}

// contents are the names in a container, and when they were written.
func contents(t *testing.T, client *container.Client) (text string) {
	t.Helper()
	for pager := client.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(within(t))
		if err != nil {
			return ""
		}
		for _, o := range page.Segment.BlobItems {
			text += *o.Name + " " + o.Properties.LastModified.String() + "\n"
		}
	}
	return text
}
