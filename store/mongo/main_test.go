package mongo

import (
	"os"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
)

func TestMain(m *testing.M) {
	parallel.Waiting() // for servers that don't answer
	os.Exit(m.Run())
}
