package scrub

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// A page of metrics has no secret, and is scrubbed whole each time that it is asked for.
func BenchmarkScrubAPageOfMetrics(b *testing.B) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "workerlease_allocations_total{worker_type=\"invoice-mailer\",worker=\"vm-%d\",priority=\"0\"} %d\n", i, i)
	}
	var s Secrets
	s.Hide("correct-horse-battery-staple")
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if got := s.Scrub(text.String()); len(got) != text.Len() {
			b.Fatal("something was taken out")
		}
	}
}

// A text that isn't searched has no secret: names and what stands around them, in any order, are as good
// as their patterns say.
func TestATextThatIsNotSearchedHasNoSecret(t *testing.T) {
	parts := []string{
		"password", "PaſſWord", "SECRET", "toKen", "access", "account", "key", "sig", "sign", "-", "_", ".", "%", "%26", "%3d", "%3D", "=", ":",
		" ", "\"", "'", `\`, "é", "x1", "\n", ";", "&", "://", "@", "eyJabcdefgh.x",
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	searched, found := 0, 0
	for range 20_000 {
		var b strings.Builder
		for range 3 + rnd.IntN(7) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		for _, place := range places {
			switch may, is := place.may(b.String()), place.pattern.MatchString(b.String()); {
			case is && !may:
				t.Fatalf("%q isn't searched for %v", b.String(), place.pattern)
			case is:
				found++
				fallthrough
			case may:
				searched++
			}
		}
	}
	if found < 2_000 || searched < found {
		t.Errorf("%d texts searched, %d found: want more than 2,000", searched, found)
	}
}

// An encoded text is one long name with a % in many places. Looked at from each of them, 12,000 bytes took
// a minute.
func TestAnEncodedTextIsSearchedOnce(t *testing.T) {
	suites.RealTime(t)
	for _, part := range []string{"%C3%A9", "%3d", "%", "a.b-c%26", "%3d ", `%"`, "secre%3d"} {
		text := strings.Repeat(part, 12_000/len(part))
		begun := time.Now()
		if got := (Secrets{}).Scrub(text); got != text {
			t.Errorf("%d times %q: something was taken out", len(text)/len(part), part)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%d bytes of %q took %v", len(text), part, took)
		}
	}
}
