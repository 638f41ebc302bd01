package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// Names looks at the worker types of a store, as [store.Ledger.WorkerTypes] lists them: which differ
// by case only, and which no worker can have.
func Names(names []string) (all []Finding) {
	add := func(c Code, format string, args ...any) {
		all = append(all, Finding{Code: c, Severity: rules[c].severity, Text: fmt.Sprintf(format, args...), Remedy: rules[c].remedy})
	}
	alike := map[string][]string{}
	for _, name := range names {
		if store.CheckWorkerType(name) != nil {
			add(InvalidWorkerType, "There are records of %.80q, which is no worker type.", name)
			continue
		}
		folded := strings.ToLower(name)
		alike[folded] = append(alike[folded], name)
	}
	for _, name := range names {
		if same := alike[strings.ToLower(name)]; len(same) > 1 && same[0] == name {
			slices.Sort(same)
			add(TypesDifferByCase, "The worker types %s differ by case only.", strings.Join(same, ", "))
		}
	}
	return all
}

// Unread is the finding that the ledger of a worker type can't be read at all, because a store refuses it.
func Unread(workerType string, err error) Finding {
	return Finding{
		Code: UnreadableLedger, Severity: rules[UnreadableLedger].severity,
		Text: fmt.Sprintf("The ledger of %.80s can't be read: %v.", workerType, err), Remedy: rules[UnreadableLedger].remedy,
	}
}
