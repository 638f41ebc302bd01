package storetest_test

import (
	"os"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(openAlone)
	if os.Getenv(breakEnv) == "" {
		parallel.Waiting() // for processes with broken stores, which wait for much
	}
	os.Exit(m.Run())
}
