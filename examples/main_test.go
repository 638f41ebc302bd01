package examples

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs more examples at once than there are processors: they wait for slots.
func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = p.Value.Set("8")
	}
	os.Exit(m.Run())
}
