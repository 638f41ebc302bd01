// Package versions shows that this version and an earlier one work side by side on one ledger, in both directions: a fleet
// is upgraded worker by worker, and rolled back. Each slot is run once, and either version finds the ledger sound.
//
// The earlier version is the newest tag below this one, or until there is one a commit of the history. A checkout without
// it, as a shallow one, skips the tests.
package versions
