package named

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	_ "github.com/slotlease/slotlease/store/azblob" // the schemes
	_ "github.com/slotlease/slotlease/store/cosmos"
	_ "github.com/slotlease/slotlease/store/mongo"
	_ "github.com/slotlease/slotlease/store/mysql"
	_ "github.com/slotlease/slotlease/store/postgres"
	_ "github.com/slotlease/slotlease/store/redis"
	_ "github.com/slotlease/slotlease/store/s3"
	_ "github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// variable names the server, as LEASECTL_STORE would.
const variable = "SLOTLEASE_STORE"

// skipped is what takes a second way into the store than its URI.
var skipped = func() map[string]string {
	const why = "what is planted is planted by the suite of the store itself"
	all := map[string]string{}
	for _, name := range []string{
		"append after/*", "page/*", "tail/*", "planted documents", "hostile names from outside", "readers", "two paths", "foreign constraints",
		"watch", "roster/*", "roster before init/*", "attendance/*", "before init/*", "round trip/*",
	} {
		all[name] = why
	}
	return all
}()

func TestTheNamedStorePassesTheSuite(t *testing.T) {
	uri := os.Getenv(variable)
	if uri == "" {
		t.Skipf("%s names no server", variable)
	}
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		if strings.Contains(t.Name(), "/hostile_names_from_outside/") {
			t.Skip("nothing can be planted by the URI alone")
		}
		fresh := freshly(uri)
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				l, err := store.Open(context.WithoutCancel(t.Context()), fresh, store.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return l
			},
			Plant: func(t testing.TB, _ string, _ int64, _ map[string]any) {
				t.Skip("nothing can be planted by the URI alone")
			},
			Skips:     skipped,
			Rounds:    100,
			FreeStamp: !strings.HasPrefix(uri, "mongodb"),
		}
	})
}

// freshly is a URI of the same server, with a place where nothing is.
func freshly(uri string) string {
	scheme, place, _ := strings.Cut(uri, ":")
	name := fmt.Sprintf("named_%d", time.Now().UnixNano())
	if scheme == "sqlite" {
		return uri + "." + name
	}
	parameter := map[string]string{"postgres": "table", "postgresql": "table", "mysql": "table", "redis": "prefix", "rediss": "prefix", "mongodb": "collection", "mongodb+srv": "collection"}[scheme]
	place, query, _ := strings.Cut(place, "?")
	if parameter == "" { // a path within a bucket, or a container of a database
		return scheme + ":" + strings.TrimSuffix(place, "/") + "/" + strings.ReplaceAll(name, "_", "-") + "?" + query
	}
	return scheme + ":" + place + "?" + strings.TrimPrefix(query+"&"+parameter+"="+url.QueryEscape(name), "&")
}
