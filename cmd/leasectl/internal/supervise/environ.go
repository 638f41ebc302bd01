package supervise

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// environ is the environment of the command, with the variables that describe its
// lease.
func environ(env []string, l workerlease.Lease) []string {
	lease := map[string]string{
		"LEASE_WORKER_TYPE": l.WorkerType,
		"LEASE_INSTANCE_ID": l.InstanceID,
		"LEASE_GROUP":       l.Group,
		"LEASE_TOKEN":       strconv.FormatInt(l.Token, 10),
		"LEASE_SLOT_START":  store.Format(l.Slot.Start),
		"LEASE_SLOT_END":    store.Format(l.Slot.End),
		"LEASE_EXPIRES_AT":  store.Format(l.Expiry),
	}
	out := slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		_, ours := lease[name]
		return ours
	})
	for _, name := range slices.Sorted(maps.Keys(lease)) {
		out = append(out, name+"="+lease[name])
	}
	return out
}
