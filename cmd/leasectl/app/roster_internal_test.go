package app

import (
	"testing"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

func TestARosterIsKeptWhereEachRequestCostsOnlyIfSomethingNeedsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		flags         runFlags
		billed, keeps bool
	}{
		{"a database", runFlags{}, false, true},
		{"a database, with --no-roster", runFlags{noRoster: true}, false, false},
		{"a bucket", runFlags{}, true, false},
		{"a bucket, with --roster", runFlags{roster: true}, true, true},
		{"a bucket, with --label", runFlags{options: workerlease.Options{Labels: map[string]string{"region": "eu"}}}, true, true},
		{"a bucket, with --tie-break spread", runFlags{options: workerlease.Options{TieBreak: priority.Spread}}, true, true},
	} {
		if got := c.flags.keepsRoster(c.billed); got != c.keeps {
			t.Errorf("%s: keeps a roster: %v, want %v", c.name, got, c.keeps)
		}
	}
	for _, uri := range []string{"s3://bucket/jobs", "azblob://account/container", "redis://127.0.0.1/0"} {
		if d, ok := store.DriverOf(uri); !ok || d.Billed != (uri[:2] != "re") {
			t.Errorf("DriverOf(%q) = Billed %v, %v, want true for services that charge for each request", uri, d.Billed, ok)
		}
	}
}
