package store

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func withOutput(text string) Outcome {
	at := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	return Outcome{Result: Failed, Exited: true, ExitCode: 3, InstanceID: "anna", Attempt: 1, SlotStart: at, SlotEnd: at.Add(time.Hour), Output: text}
}

// read is what a record with an outcome has of its output.
func read(t *testing.T, o Outcome) string {
	t.Helper()
	text := o.Metadata()
	if text == "" || len(text) > MaxMetadata {
		t.Fatalf("Metadata() has %d bytes", len(text))
	}
	got, ok := Record{Kind: KindOutcome, Metadata: text}.Outcome()
	if !ok {
		t.Fatalf("%.100q… is no outcome", text)
	}
	return got.Output
}

func TestAnOutputIsReadBack(t *testing.T) {
	for _, text := range []string{"", "one\ntwo\n", "no end", "\x1b[2J\tü\u202e\n", strings.Repeat("a line that comes again and again\n", 400)} {
		if got := read(t, withOutput(text)); got != text {
			t.Errorf("an output of %q is read back as %q", text, got)
		}
	}
	if got := read(t, withOutput("a\x00b\xff\n")); got != "a\uFFFDb\uFFFD\n" {
		t.Errorf("what is no text is read back as %q", got)
	}
}

// A log mostly fits whole; of what doesn't, the end is kept, from the beginning of a line.
func TestOfAnOutputThatDoesNotFitTheEndIsKept(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var log, noise strings.Builder
	for i := 0; log.Len() < MaxOutput-200; i++ {
		_, _ = fmt.Fprintf(&log, "2026-11-28T02:%02d:%02d.%03dZ INFO exported invoice %d of customer %d, %d rows\n", i/60, i%60, random.IntN(1000), 10_000+i, random.IntN(5000), random.IntN(300))
	}
	if got := read(t, withOutput(log.String())); got != log.String() {
		t.Errorf("of a log of %d bytes %d are read back, want all", log.Len(), len(got))
	}
	for noise.Len() < 3*MaxOutput {
		_, _ = fmt.Fprintf(&noise, "%x\n", random.Uint64())
	}
	got := read(t, withOutput(noise.String()))
	if body, ok := strings.CutPrefix(got, cut); !ok || !strings.HasSuffix(noise.String(), "\n"+body) || len(got) < 8<<10 {
		t.Errorf("of noise %d bytes are read back, %.40q…, want the end of it, by lines", len(got), got)
	}
	if got := read(t, withOutput(strings.Repeat("€", MaxOutput))); !utf8.ValidString(got) || !strings.HasPrefix(got, cut+"€") || len(got) > MaxOutput {
		t.Errorf("of one long line %d bytes are read back, %.20q…", len(got), got)
	}
	o := withOutput(noise.String())
	o.Error = strings.Repeat("\x01", MaxError) // Each becomes six bytes.
	if got := read(t, o); !strings.HasPrefix(got, cut) {
		t.Errorf("beside a large error %d bytes are read back", len(got))
	}
}

// Earlier versions pass the field over; and whatever another program puts there harms nobody.
func TestAnOutputOfOthers(t *testing.T) {
	var bomb bytes.Buffer
	w, _ := flate.NewWriter(&bomb, flate.BestCompression)
	_, _ = w.Write(make([]byte, 4<<20))
	_ = w.Close()
	plain := withOutput("").Metadata()
	for text, want := range map[string]int{"%%%": 0, "AAAA": 0, base64.StdEncoding.EncodeToString(bomb.Bytes()): MaxOutput} {
		quoted, _ := json.Marshal(text)
		o, ok := Record{Kind: KindOutcome, Metadata: strings.Replace(plain, `{`, `{"output":`+string(quoted)+`,`, 1)}.Outcome()
		if !ok || len(o.Output) > want || strings.ContainsRune(o.Output, 0) || o.ExitCode != 3 {
			t.Errorf("an outcome with output %.20q is %v, with %d bytes, want it with at most %d", text, ok, len(o.Output), want)
		}
	}
}
