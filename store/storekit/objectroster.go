package storekit

import (
	"context"
	"errors"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// Attend stores presences in place of those with their keys, several at a time.
func (l *ObjectLedger) Attend(ctx context.Context, presences []store.Presence) error {
	bodies, err := EncodePresences(presences)
	if err != nil {
		return l.o.Runner.Invalid("attend", err)
	}
	_, err = Run(ctx, l.o.Runner, "attend", "", func(ctx context.Context) (none struct{}, err error) {
		return none, Several(len(presences), func(i int) error {
			return l.o.Objects.Replace(ctx, l.o.Folder+PresenceName(presences[i].WorkerType, presences[i].ID), bodies[i])
		})
	})
	return err
}

// Leave removes presences, several at a time.
func (l *ObjectLedger) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := store.CheckWorkerType(workerType); err != nil {
		return l.o.Runner.Invalid("leave", err)
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !store.IsPresenceID(id) })
	_, err := Run(ctx, l.o.Runner, "leave", workerType, func(ctx context.Context) (none struct{}, err error) {
		return none, Several(len(ids), func(i int) error {
			_, err := l.o.Objects.Delete(ctx, l.o.Folder+PresenceName(workerType, ids[i]))
			return err
		})
	})
	return err
}

// Presences lists the presences of a worker type, or of all.
func (l *ObjectLedger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	prefix := l.o.Folder + presenceFolder
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.o.Runner.Invalid("presences", err)
		}
		prefix += workerType + "/"
	}
	return Run(ctx, l.o.Runner, "presences", workerType, func(ctx context.Context) ([]store.Presence, error) {
		var found []Object
		err := l.o.Objects.List(ctx, prefix, "", listPage, func(o Object) bool {
			found = append(found, o)
			return true
		})
		if err != nil {
			return nil, err
		}
		err = Several(len(found), func(i int) (err error) {
			if found[i].Body == nil {
				found[i].Body, err = l.o.Objects.Read(ctx, found[i].Name)
			}
			if errors.Is(err, store.ErrNotFound) {
				err = nil // It left meanwhile.
			}
			return err
		})
		var all []store.Presence
		for _, o := range found {
			if p, ok := DecodePresence(o.Body); ok && l.o.Folder+PresenceName(p.WorkerType, p.ID) == o.Name {
				all = append(all, p)
			}
		}
		slices.SortFunc(all, store.ComparePresences)
		return all, err
	})
}
