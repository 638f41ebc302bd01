package supervise

import (
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// environ is the environment of the command, with the variables that describe its
// lease.
func environ(env []string, l workerlease.Lease) []string {
	lease := []struct{ name, value string }{
		{"LEASE_WORKER_TYPE", l.WorkerType},
		{"LEASE_INSTANCE_ID", l.InstanceID},
		{"LEASE_GROUP", l.Group},
		{"LEASE_TOKEN", strconv.FormatInt(l.Token, 10)},
		{"LEASE_SLOT_START", store.Format(l.Slot.Start)},
		{"LEASE_SLOT_END", store.Format(l.Slot.End)},
		{"LEASE_EXPIRES_AT", store.Format(l.Expiry)},
	}
	var out []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		ours := false
		for _, v := range lease {
			ours = ours || name == v.name
		}
		if !ours {
			out = append(out, pair)
		}
	}
	for _, v := range lease {
		out = append(out, v.name+"="+v.value)
	}
	return out
}
