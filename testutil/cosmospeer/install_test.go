package cosmospeer

import (
	"bytes"
	"testing"
)

func TestLockfileHoldsNoAddresses(t *testing.T) {
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := source.ReadFile("server/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("://")); i >= 0 {
			t.Errorf("%s holds the address …%s…, want none: see peer.Script", name, b[max(0, i-20):min(len(b), i+40)])
		}
	}
}
