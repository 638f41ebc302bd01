package supervise

import (
	"strconv"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// environ is the environment of the command, with the variables that describe its
// lease.
func environ(env []string, l workerlease.Lease) []string {
	return guard.Environ(env, map[string]string{
		"LEASE_WORKER_TYPE": l.WorkerType,
		"LEASE_INSTANCE_ID": l.InstanceID,
		"LEASE_GROUP":       l.Group,
		"LEASE_TOKEN":       strconv.FormatInt(l.Token, 10),
		"LEASE_SLOT_START":  store.Format(l.Slot.Start),
		"LEASE_SLOT_END":    store.Format(l.Slot.End),
		"LEASE_EXPIRES_AT":  store.Format(l.Expiry),
	})
}
