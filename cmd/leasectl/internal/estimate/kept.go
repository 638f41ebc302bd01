package estimate

import "time"

// kept are the records and presences that a store of objects has.
type kept struct {
	// records is how many are left when a trim has been, and trimmed how many it deletes.
	records, trimmed float64
	presences        float64
	record, presence float64 // bytes of one
}

// The sizes of documents of workers with short names, without metadata, as tests measure them: what is stored, in bytes. In
// Kubernetes the object is around it, as etcd has it.
const (
	recordBytes, presenceBytes = 550, 400

	kubernetesBytes = 500
)

// keeping are what workers leave of records that come at a distance.
func keeping(o Options, between time.Duration) kept {
	depth := o.Timing.TrimKeep
	for time.Duration(depth)*between < o.Timing.Options.Retention {
		depth *= 2
	}
	k := kept{
		records: float64(depth) + 1, trimmed: float64(o.Timing.TrimEvery), presences: float64(o.Workers),
		record: recordBytes, presence: presenceBytes,
	}
	if o.Store == Kubernetes {
		k.record, k.presence = k.record+kubernetesBytes, k.presence+kubernetesBytes
	}
	return k
}

// most is how many records there are before a trim.
func (k kept) most() float64 { return k.records + k.trimmed - 1 }

// bytes are those of all, in the mean.
func (k kept) bytes() float64 {
	return (k.records+k.most())/2*k.record + k.presences*k.presence
}
