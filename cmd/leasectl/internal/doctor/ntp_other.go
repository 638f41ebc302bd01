//go:build !linux

package doctor

import "github.com/slotlease/slotlease/store"

// judgeNTP can't ask here.
func judgeNTP() store.Finding { return skip(checkNTP, "this system isn't asked") }
