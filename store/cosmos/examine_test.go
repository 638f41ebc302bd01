package cosmos

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// allChecks is how many checks there are.
const allChecks = 14

func TestAFaultOfAnAccountIsFoundAndHidesNoOther(t *testing.T) {
	t.Parallel()
	property := func(name string, value any) func(f *fakeAccount) {
		return func(f *fakeAccount) { f.properties[name] = value }
	}
	container := func(name string, value any) func(f *fakeAccount) {
		return func(f *fakeAccount) { f.container[name] = value }
	}
	denies := func(ops ...string) func(f *fakeAccount) {
		return func(f *fakeAccount) {
			f.hook = func(r *fakeRequest) *fakeReply {
				for _, op := range ops {
					if r.op == op {
						return refusal(403, "principal does not have required RBAC permissions", headerSubstatus, "5300")
					}
				}
				return nil
			}
		}
	}
	for name, c := range map[string]struct {
		plant  func(f *fakeAccount)
		unsafe bool
		check  string
		level  store.Level
		says   string
		also   []string
	}{
		"nothing wrong":           {plant: func(*fakeAccount) {}, check: store.CheckConnection, level: store.LevelOK, says: "the account acct.documents.azure.com:443 answered"},
		"multi-region writes":     {plant: property("enableMultipleWriteLocations", true), check: CheckRegions, level: store.LevelFail, says: "takes writes in several regions, each of which accepts the same key → turn multi-region writes off"},
		"a time to live":          {plant: container("defaultTtl", 3600), check: store.CheckExpiry, level: store.LevelFail, says: "deletes its items after 3600 s (defaultTtl), and would delete the newest record → turn its time to live off", also: []string{store.CheckAppend}},
		"unique keys":             {plant: container("uniqueKeyPolicy", map[string]any{"uniqueKeys": []any{map[string]any{"paths": []string{"/token"}}}}), check: store.CheckConstraints, level: store.LevelFail, says: "has unique keys besides the id", also: []string{store.CheckAppend}},
		"another partition key":   {plant: container("partitionKey", map[string]any{"paths": []string{"/id"}, "kind": "Hash"}), check: CheckPartitionKey, level: store.LevelFail, says: `has the partition key ["/id"]`, also: []string{store.CheckAppend}},
		"a lazy index":            {plant: container("indexingPolicy", map[string]any{"indexingMode": "lazy", "automatic": true}), check: CheckIndexing, level: store.LevelFail, says: "→ make it consistent", also: []string{store.CheckAppend}},
		"session consistency":     {plant: property("userConsistencyPolicy", map[string]any{"defaultConsistencyLevel": "Session"}), check: CheckConsistency, level: store.LevelWarn, says: "is Session, weaker than BoundedStaleness"},
		"an account of few words": {plant: func(f *fakeAccount) { delete(f.properties, "enableMultipleWriteLocations") }, check: CheckRegions, level: store.LevelFail, says: "doesn't say whether it takes writes in several regions → accept the danger"},
		"the same, accepted":      {plant: func(f *fakeAccount) { delete(f.properties, "enableMultipleWriteLocations") }, unsafe: true, check: CheckRegions, level: store.LevelWarn, says: "doesn't say whether"},
		"two regions": {plant: func(f *fakeAccount) {
			f.properties["readableLocations"] = regions("West Europe", "North Europe")
			f.properties["userConsistencyPolicy"] = map[string]any{"defaultConsistencyLevel": "BoundedStaleness"}
		}, check: CheckRegions, level: store.LevelWarn, says: "the account has 2 regions and not Strong consistency"},
		"no container":             {plant: func(f *fakeAccount) { f.container = nil }, check: store.CheckLedger, level: store.LevelFail, says: "there is no container WorkerProcess/WorkerLeases → leasectl init", also: []string{CheckPartitionKey, store.CheckExpiry, store.CheckConstraints, CheckIndexing, store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster}},
		"no roster":                {plant: func(f *fakeAccount) { f.roster = nil }, check: store.CheckRoster, level: store.LevelWarn, says: "there is no container WorkerProcess/WorkerLeases-roster → leasectl init"},
		"a key that may only read": {plant: denies("create", "delete", "leave", "attend"), check: store.CheckAppend, level: store.LevelFail, says: "/items/create, or the role Cosmos DB Built-in Data Contributor", also: []string{store.CheckTrim, store.CheckRoster}},
		"no right to query":        {plant: denies("query"), check: store.CheckRead, level: store.LevelFail, says: "executeQuery", also: []string{store.CheckAppend}},
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.roster = map[string]map[string]json.RawMessage{}
			f.plant(t, "job", store.Key("job", 1), storetest.Fields(storetest.Grant("job", 1)))
			c.plant(f)
			before := len(f.items["job"])
			found, err := f.open(t, Options{UnsafeUnverifiedAccount: c.unsafe}).Examine(within(t, time.Minute))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, c.level, c.says)
			documenttest.FindsNoMore(t, found, append(c.also, c.check, store.CheckTLS)...)
			documenttest.Equal(t, "checks", len(found), allChecks)
			documenttest.Equal(t, "items", len(f.items["job"]), before)
			documenttest.Equal(t, "partitions", len(f.items), 1)
		}))
	}
}

func TestAnAccountThatDoesNotAnswerIsFoundInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = func(*fakeRequest) *fakeReply { return silence }
		began := time.Now()
		found, err := f.open(t, Options{}).Examine(within(t, 4*time.Second))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, store.CheckConnection, store.LevelFail, "no answer in time")
		documenttest.Equal(t, "checks", len(found), allChecks)
		documenttest.Equal(t, "what it took", time.Since(began), 3600*time.Millisecond)
	})
}

// The peer answers as a server does that isn't made for these tests.
func TestThePeersFaultsAreFound(t *testing.T) {
	t.Parallel()
	uri := cosmospeer.URI(t)
	database := newDatabase(t, past(t, uri))
	l := opened(t, Options{URI: uri, Database: database})
	found, err := l.Examine(within(t, patience))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckLedger, store.LevelFail, "there is no container "+database+"/WorkerLeases")
	must(t, "Init()", l.Init(within(t, patience)))
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	found, err = l.Examine(within(t, patience))
	must(t, "Examine()", err)
	documenttest.FindsNoMore(t, found, CheckConsistency)
	documenttest.Equal(t, "checks", len(found), allChecks)
	records, _, err := l.Tail(within(t, patience), "job", 10)
	must(t, "Tail()", err)
	documenttest.Equal(t, "records", len(records), 1)
}
