package storekit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

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

// Presences lists the presences of a worker type, or of all. At any time it has the contents of AtATime objects at most.
func (l *ObjectLedger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	prefix := l.o.Folder + presenceFolder
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.o.Runner.Invalid("presences", err)
		}
		prefix += workerType + "/"
	}
	return Run(ctx, l.o.Runner, "presences", workerType, func(ctx context.Context) ([]store.Presence, error) {
		var mu sync.Mutex
		var names []string
		var all []store.Presence
		take := func(name string, body []byte) {
			p, ok := DecodePresence(body)
			if !ok || l.o.Folder+PresenceName(p.WorkerType, p.ID) != name {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, p)
		}
		err := l.o.Objects.List(ctx, prefix, "", listPage, func(o Object) bool {
			if o.Body != nil {
				take(o.Name, o.Body)
			} else if _, last, _ := strings.Cut(strings.TrimPrefix(o.Name, l.o.Folder+presenceFolder), "/"); strings.HasPrefix(last, presencePrefix) && o.Size <= MaxPresence {
				names = append(names, o.Name)
			}
			return true
		})
		if err == nil {
			err = Several(len(names), func(i int) error {
				body, err := l.o.Objects.Read(ctx, names[i])
				if errors.Is(err, store.ErrNotFound) {
					return nil // It left meanwhile.
				}
				if err == nil {
					take(names[i], body)
				}
				return err
			})
		}
		slices.SortFunc(all, store.ComparePresences)
		return all, err
	})
}
