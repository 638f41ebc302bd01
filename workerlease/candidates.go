package workerlease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
	"github.com/slotlease/slotlease/workerlease/internal/option"
)

// Candidate is a worker of a roster, as others see it.
type Candidate struct {
	store.Presence
	// Standing is what it is at present.
	Standing Standing `json:"standing"`
	// Present says that it is there. If it isn't, it has died, has stopped, or can't reach the store.
	Present bool `json:"present"`
	// Holds says that the lease by the ledger is the worker's or its group's, as far as names,
	// host and process tell. It may be gone nevertheless.
	Holds bool `json:"holds"`
}

// Candidates lists the workers of a type, or of all types if it is empty, as they are in the ledger's
// roster, by worker type and InstanceID: those whose clients have ClientOptions.Roster, and that were seen
// within 24 h. It asks the store for its time, the roster, and the newest records of each of these types. This
// client needs no ClientOptions.Roster. If all types are asked for, and the store refuses to read the ledger of one, its workers are
// listed, and none of them as a holder. The error matches errors.ErrUnsupported if the ledger keeps no roster (see store.Roster).
func (c *Client) Candidates(ctx context.Context, workerType string) ([]Candidate, error) {
	if !c.made() {
		var errs option.Errors
		c.checkLedger(&errs)
		return nil, fmt.Errorf("candidates of %.70q: %w: %w", workerType, ErrOptions, errs.Join())
	}
	r, ok := c.ledger.(interface {
		Presences(ctx context.Context, workerType string) ([]store.Presence, error)
	})
	if !ok {
		return nil, fmt.Errorf("candidates of %.70q: the ledger keeps no roster: %w", workerType, errors.ErrUnsupported)
	}
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, err
		}
	}
	stamp, err := c.ledger.Now(ctx)
	if err != nil {
		return nil, err
	}
	presences, err := r.Presences(ctx, workerType)
	if err != nil {
		return nil, err
	}
	entries := map[string][]history.Entry{}
	list := make([]Candidate, 0, len(presences))
	for _, p := range presences {
		if isOver(p, stamp.Time) {
			continue
		}
		of, known := entries[p.WorkerType]
		if !known {
			records, _, err := c.ledger.Tail(ctx, p.WorkerType, lookForHolder)
			if err != nil && (!errors.Is(err, store.ErrRefused) || workerType != "") {
				return nil, err
			}
			of = history.Read(records, stamp.Time, nil)
			entries[p.WorkerType] = of
		}
		standing := StandingOf(p, of, stamp.Time)
		list = append(list, Candidate{Presence: p, Standing: standing, Present: standing.There(), Holds: holdsAt(p, of, stamp.Time)})
	}
	slices.SortStableFunc(list, func(a, b Candidate) int {
		return cmp.Or(strings.Compare(a.WorkerType, b.WorkerType), strings.Compare(a.InstanceID, b.InstanceID))
	})
	return list, nil
}

// lookForHolder is how many records are read to find the term in force.
const lookForHolder = 20

// holds reports that a worker has the lease that a record grants.
func holds(r store.Record, p store.Presence) bool {
	if r.Claim == "" || r.Group != p.Group {
		return false
	}
	return r.Group != "" || isBy(r, p)
}

// isBy reports that a record is a worker's own, by names, host and process.
func isBy(r store.Record, p store.Presence) bool {
	return r.InstanceID == p.InstanceID && r.Worker.Host == p.Host && r.Worker.PID == p.PID
}
