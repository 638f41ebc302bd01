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
)

// Candidate is a worker of a roster, as others see it.
type Candidate struct {
	store.Presence
	// Present says that the worker has renewed its presence as announced. If it has not, it has
	// died, has stopped, or can't reach the store.
	Present bool `json:"present"`
	// Holds says that the lease in force by the ledger is the worker's or its group's, as far as names,
	// host and process tell.
	Holds bool `json:"holds"`
}

// Candidates lists the workers of a type, or of all types if it is empty, as they are in the ledger's
// roster, by worker type and InstanceID: those whose clients have ClientOptions.Roster, and that were seen
// within 24 h. It asks the store for its time, the roster, and the newest records of each of these types. This
// client needs no ClientOptions.Roster. The error matches errors.ErrUnsupported if the ledger keeps no roster
// (see store.Roster).
func (c *Client) Candidates(ctx context.Context, workerType string) ([]Candidate, error) {
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
	holders := map[string]store.Record{}
	list := make([]Candidate, 0, len(presences))
	for _, p := range presences {
		if isOver(p, stamp.Time) {
			continue
		}
		holder, known := holders[p.WorkerType]
		if !known {
			if holder, err = c.holderAt(ctx, p.WorkerType, stamp); err != nil {
				return nil, err
			}
			holders[p.WorkerType] = holder
		}
		list = append(list, Candidate{Presence: p, Present: IsPresent(p, stamp.Time), Holds: p.Phase != store.PhaseStopped && holds(holder, p)})
	}
	slices.SortStableFunc(list, func(a, b Candidate) int {
		return cmp.Or(strings.Compare(a.WorkerType, b.WorkerType), strings.Compare(a.InstanceID, b.InstanceID))
	})
	return list, nil
}

// lookForHolder is how many records are read to find the term in force.
const lookForHolder = 20

// holderAt is the grant in force at a time of the store; the zero Record if there is none.
func (c *Client) holderAt(ctx context.Context, workerType string, at store.Stamp) (store.Record, error) {
	records, _, err := c.ledger.Tail(ctx, workerType, lookForHolder)
	if err != nil {
		return store.Record{}, err
	}
	for _, e := range history.Read(records, at.Time, nil) {
		if e.InForce(at.Time) {
			return e.Record, nil
		}
	}
	return store.Record{}, nil
}

// holds reports that a worker has the lease that a record grants.
func holds(r store.Record, p store.Presence) bool {
	if r.Claim == "" || r.Group != p.Group {
		return false
	}
	return r.Group != "" || r.InstanceID == p.InstanceID && r.Worker.Host == p.Host && r.Worker.PID == p.PID
}
