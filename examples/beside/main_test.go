package beside

import (
	"os"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/tmpfs"
)

func TestMain(m *testing.M) {
	tmpfs.Use()
	parallel.Waiting() // for slots
	os.Exit(m.Run())
}
