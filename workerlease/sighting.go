package workerlease

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

const (
	// season is how long a sighting counts at least; after two of them it is deleted.
	season = 90 * 24 * time.Hour
	// sightingKeys is the number of keys that a sighting may have: all but the first are for those
	// that find something else there, such as one of a worker whose clock was ahead.
	sightingKeys = 4
	// seasonBits is the number of bits that keys of one season differ in.
	seasonBits = 40
)

// sight returns since when some worker has seen poison: when the sighting of it was recorded, which
// this worker does if there is none. Sightings have a worker type of their own, because the ledger
// that this worker can't obey may be obeyed by others. Their keys follow from what they are of: so
// none stands in the way of another, however many there are.
func (w *WorkerLease) sight(ctx context.Context, a machine.Sight) (time.Time, error) {
	ledger, r := w.client.ledger, sighting(a)
	r.InstanceID, r.Worker = w.options.InstanceID, w.machine.Worker
	now := a.Since.UnixMilli() / season.Milliseconds()
	since, _, err := known(ctx, ledger, r, now-1)
	if err != nil || !since.IsZero() {
		return since, err
	}
	for range sightingKeys {
		if since, r.Seq, err = known(ctx, ledger, r, now); err != nil || !since.IsZero() {
			return since, err
		}
		if err = ledger.Append(ctx, r); err == nil && r.Seq%8 == 1 {
			_, _ = ledger.Trim(ctx, store.Sightings, (now-1)<<seasonBits) // The next one tries again.
		}
		if !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	return a.Since, err
}

// known returns since when poison was seen by a sighting of a season that is like r, or the first
// of its keys that is free. A sighting from ahead of the time counts for nothing.
func known(ctx context.Context, ledger store.Ledger, r store.Record, season int64) (since time.Time, free int64, err error) {
	digest, _ := hex.DecodeString(r.Claim)
	first := season<<seasonBits | int64(binary.BigEndian.Uint64(digest)>>(64-seasonBits))&^(sightingKeys-1) + 1
	for seq := first; seq < first+sightingKeys; seq++ {
		k, err := ledger.Get(ctx, store.Sightings, seq)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return time.Time{}, seq, nil
		case err != nil:
			return time.Time{}, 0, err
		case k.CheckEnvelope() == nil && k.Kind == r.Kind && k.Claim == r.Claim && !k.WindowStart.After(r.WindowStart):
			return k.WindowStart, 0, nil
		}
	}
	return time.Time{}, 0, fmt.Errorf("no key is left for a sighting: see seq %d to %d of %s", first, first+sightingKeys-1, store.Sightings)
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
