package pagetest

import (
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/app"
	"github.com/slotlease/slotlease/internal/tmpfs"
	"github.com/slotlease/slotlease/testutil/leasectltest"
)

// The test binary is leasectl where a test starts it.
func TestMain(m *testing.M) {
	tmpfs.Use()
	leasectltest.Main(m, app.Main)
}
