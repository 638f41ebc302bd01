package cosmos

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

// partitionPath is the partition key of a container that keeps ledgers.
const partitionPath = "/" + document.WorkerType

// containerFlaws are the reasons why a container can't keep ledgers.
func (l *Ledger) containerFlaws(p *azcosmos.ContainerProperties) (all []storekit.Flaw) {
	add := func(is bool, check, remedy, format string, args ...any) {
		if is {
			what := fmt.Sprintf("container %s/%s "+format, append([]any{l.address.database, l.address.container}, args...)...)
			all = append(all, storekit.Flaw{Check: check, What: what, Remedy: remedy})
		}
	}
	paths := p.PartitionKeyDefinition.Paths
	add(!slices.Equal(paths, []string{partitionPath}), CheckPartitionKey, "use another container", "has the partition key %.120q, must have %q", paths, partitionPath)
	if ttl := p.DefaultTimeToLive; ttl != nil {
		add(*ttl > 0, store.CheckExpiry, "turn its time to live off", "deletes its items after %d s (defaultTtl), and would delete the newest record", *ttl)
	}
	if u := p.UniqueKeyPolicy; u != nil {
		add(len(u.UniqueKeys) > 0, store.CheckConstraints, "use another container", "has unique keys besides the id, and would take one record for another")
	}
	if i := p.IndexingPolicy; i != nil {
		lax := i.IndexingMode != "" && !strings.EqualFold(string(i.IndexingMode), string(azcosmos.IndexingModeConsistent))
		add(lax, CheckIndexing, "make it consistent", "has the indexing mode %.20q, with which queries miss what was written", i.IndexingMode)
	}
	return all
}

// judgeContainer says why a container can't keep ledgers, or nil.
func (l *Ledger) judgeContainer(p *azcosmos.ContainerProperties) error {
	if p == nil {
		return errors.New("the container's properties are missing in the reply")
	}
	if flaws := l.containerFlaws(p); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	return nil
}

// indexing covers what is queried and nothing else, so that an append is charged
// for no more. ORDER BY needs an index of its path.
func indexing() *azcosmos.IndexingPolicy {
	return &azcosmos.IndexingPolicy{
		Automatic:     true,
		IndexingMode:  azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/" + fieldID + "/?"}, {Path: partitionPath + "/?"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/*"}},
	}
}
