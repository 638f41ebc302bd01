package workerlease

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

const (
	// sightings is how many of the newest sightings count: more than there are worker types
	// with poison at a time.
	sightings = 100
	// sightingRaces is how often another worker may record a sighting first.
	sightingRaces = 5
)

// sight returns since when some worker has seen poison: when the sighting of it was recorded, which
// this worker does if there is none. Sightings stand in a ledger of their own, because the one
// that can't be obeyed by this worker may be obeyed by others.
func (w *WorkerLease) sight(ctx context.Context, a machine.Sight) (time.Time, error) {
	r := sighting(a)
	r.InstanceID, r.Worker = w.options.InstanceID, w.machine.Worker
	for races := 0; ; races++ {
		known, _, err := w.client.ledger.Tail(ctx, store.Sightings, sightings)
		if err != nil {
			return time.Time{}, err
		}
		r.Seq = 1
		for _, k := range known {
			if k.Kind == store.KindSighting && k.Claim == r.Claim && k.CheckEnvelope() == nil {
				return k.WindowStart, nil
			}
			r.Seq = max(r.Seq, k.Seq+1)
		}
		err = w.client.ledger.Append(ctx, r)
		if !errors.Is(err, store.ErrConflict) || races == sightingRaces {
			if err == nil && r.Seq%sightings == 0 {
				_, _ = w.client.ledger.Trim(ctx, store.Sightings, r.Seq-sightings) // The next one tries again.
			}
			return a.Since, err
		}
	}
}

// sighting is the record of one. Its claim names the poison by what it is, as well as by where it
// stands.
func sighting(a machine.Sight) store.Record {
	p := a.Poison
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %q %q %q %d %d %d %q",
		p.WorkerType, p.Seq, p.Kind, p.Claim, p.Group, p.Token, p.WindowStart.UnixNano(), p.WindowEnd.UnixNano(), p.Defect))
	text := fmt.Sprintf("%s: seq %d can't be obeyed: %s", p.WorkerType, p.Seq, a.Why)
	text = strings.ReplaceAll(text[:min(len(text), 512)], "\x00", "")
	since := a.Since.Add(time.Millisecond - 1).Truncate(time.Millisecond)
	return store.Record{
		WorkerType: store.Sightings, Kind: store.KindSighting, Claim: hex.EncodeToString(sum[:16]), Token: p.Seq,
		WindowStart: since, WindowEnd: since, ReadAt: since, Metadata: strings.ToValidUTF8(text, ""),
	}
}
