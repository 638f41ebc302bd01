package cosmos_test

import (
	"os"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
)

func TestMain(m *testing.M) {
	parallel.Waiting() // for slots
	os.Exit(m.Run())
}
