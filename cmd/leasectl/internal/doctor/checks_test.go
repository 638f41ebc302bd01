package doctor

import (
	"slices"
	"testing"

	"github.com/slotlease/slotlease/store/azblob"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/s3"
)

func TestTheChecksOfTheCloudsHaveTheirNames(t *testing.T) {
	for _, name := range []string{
		cosmos.CheckPartitionKey, cosmos.CheckIndexing, cosmos.CheckRegions, cosmos.CheckConsistency,
		s3.CheckCondition, s3.CheckVersions, azblob.CheckImmutability,
	} {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == name }) {
			t.Errorf("checks has no %s", name)
		}
	}
}
