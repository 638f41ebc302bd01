package priority_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/priority"
)

func TestTieBreaksHaveText(t *testing.T) {
	for tie, text := range map[priority.TieBreak]string{priority.Sticky: "sticky", priority.Rotate: "rotate", priority.Random: "random", priority.Spread: "spread"} {
		if got := tie.String(); got != text {
			t.Errorf("TieBreak(%d).String() = %q, want %q", int(tie), got, text)
		}
		if got, err := priority.ParseTieBreak(text); got != tie || err != nil {
			t.Errorf("ParseTieBreak(%q) = %v, %v, want %v", text, got, err, tie)
		}
		encoded, err := json.Marshal(tie)
		if err != nil || string(encoded) != `"`+text+`"` {
			t.Errorf("json.Marshal(%v) = %s, %v, want %q", tie, encoded, err, text)
		}
		var decoded priority.TieBreak
		if err := json.Unmarshal(encoded, &decoded); err != nil || decoded != tie {
			t.Errorf("json.Unmarshal(%s) = %v, %v, want %v", encoded, decoded, err, tie)
		}
	}
	var zero priority.TieBreak
	if zero != priority.Sticky {
		t.Errorf("the zero TieBreak is %v, want sticky", zero)
	}
}

func TestUnknownTieBreaksAreRefused(t *testing.T) {
	for _, text := range []string{"", "Sticky", "sticky ", "first", "TieBreak(4)"} {
		if _, err := priority.ParseTieBreak(text); err == nil || !strings.Contains(err.Error(), "want sticky, rotate, random or spread") {
			t.Errorf("ParseTieBreak(%q) = %v, want an error with the choices", text, err)
		}
		tie := priority.Random
		if err := tie.UnmarshalText([]byte(text)); err == nil || tie != priority.Random {
			t.Errorf("UnmarshalText(%q) = %v and %v, want an error and no change", text, err, tie)
		}
	}
	for tie, want := range map[priority.TieBreak]string{-1: "TieBreak(-1)", 4: "TieBreak(4)"} {
		if got := tie.String(); got != want {
			t.Errorf("TieBreak(%d).String() = %q, want %q", int(tie), got, want)
		}
		if text, err := tie.MarshalText(); err == nil {
			t.Errorf("TieBreak(%d).MarshalText() = %q, want an error", int(tie), text)
		}
	}
}
