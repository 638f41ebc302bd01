package cosmos

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// partitionPath is the partition key of a container that keeps ledgers.
const partitionPath = "/" + document.WorkerType

// judgeContainer says why a container can't keep ledgers, or nil.
func (l *Ledger) judgeContainer(p *azcosmos.ContainerProperties) error {
	if p == nil {
		return errors.New("the container's properties are missing in the reply")
	}
	if why := unfitContainer(p); why != "" {
		return fmt.Errorf("%w: container %s/%s %s", store.ErrRefused, l.address.database, l.address.container, why)
	}
	return nil
}

// unfitContainer returns the reason why a container is unfit, or "".
func unfitContainer(p *azcosmos.ContainerProperties) string {
	paths := p.PartitionKeyDefinition.Paths
	switch ttl := p.DefaultTimeToLive; {
	case !slices.Equal(paths, []string{partitionPath}):
		return fmt.Sprintf("has the partition key %.120q, must have %q: use another container", paths, partitionPath)
	case ttl != nil && *ttl > 0:
		return fmt.Sprintf("deletes its items after %d s (defaultTtl), and would delete the newest record: turn its time to live off", *ttl)
	case p.IndexingPolicy != nil && p.IndexingPolicy.IndexingMode != "" && !strings.EqualFold(string(p.IndexingPolicy.IndexingMode), string(azcosmos.IndexingModeConsistent)):
		return fmt.Sprintf("has the indexing mode %.20q, with which queries miss what was written: make it consistent", p.IndexingPolicy.IndexingMode)
	case p.UniqueKeyPolicy != nil && len(p.UniqueKeyPolicy.UniqueKeys) > 0:
		return "has unique keys besides the id, and would take one record for another: use another container"
	}
	return ""
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
