package model

import (
	"os"
	"slices"
	"testing"
)

// long are larger configurations, of up to 1 GB each.
var long = []config{
	{"seven keys", "LAST=17 KEYS=7", slices.Concat(works, midSlot)},
	{"less certain clocks", "E=2 LEN=6 LAST=21 KEYS=6", slices.Concat(works, midSlot)},
	{"stale reads", "STALE LAST=12 KEYS=5", slices.Concat(works, stale)},
	{"different intervals and releases", "MIXED RELEASES E=0 LEN=2 LAST=6 KEYS=5", slices.Concat(works, releases)},
	{"releases, uncertain clocks", "RELEASES LAST=11 KEYS=5", slices.Concat(works, releases)},
	{"stale reads and releases", "STALE RELEASES E=0 LEN=2 LAST=5 KEYS=4", slices.Concat(works, stale, releases)},
	{"releases, three slots", "RELEASES E=0 LEN=3 LAST=9 KEYS=6", slices.Concat(works, releases)},
	{"crashes, uncertain clocks", "CRASHES ZOMBIE LAST=11 KEYS=5", slices.Concat(works, crashes)},
	{"crashes and releases", "CRASHES ZOMBIE RELEASES E=0 LEN=2 LAST=5 KEYS=4", slices.Concat(works, crashes, releases)},
	{"poison, uncertain clocks", "ROGUE LAST=10 KEYS=5", slices.Concat(works, resets)},
	{"poison and releases", "ROGUE RELEASES E=0 LEN=2 LAST=5 KEYS=4", slices.Concat(works, resets, releases)},
	{"two wrong stamps in a row", "WRONG=2 VOTES=3 WRONG_BY=3 E=0 LEN=3 LAST=8 KEYS=4", slices.Concat(works, midSlot, lies)},
	{"a wrong stamp, uncertain clocks", "WRONG=1 WRONG_BY=3 EXTREMES LEN=3 LAST=9 KEYS=3", slices.Concat(works, midSlot, lies)},
	{"wrong stamps and foreign records", "WRONG=1 WRONG_BY=2 ROGUE VALID E=0 LEN=2 LAST=6 KEYS=3", slices.Concat(works, resets, foreign, lies)},
	{"a jump that is settled by patience", "JUMP=2 LATE_NEWS E=0 LEN=2 LAST=7 KEYS=3", slices.Concat(works, jumps, []string{"settled by patience"})},
	{"three workers", "N=3 E=0 LEN=2 LAST=7 KEYS=5", works},
	{"three workers, uncertain clocks", "N=3 LAST=9 KEYS=4", slices.Concat(works, midSlot)},
	{"three workers and releases", "N=3 RELEASES E=0 LEN=2 LAST=4 KEYS=3", slices.Concat(works, releases)},
	{"a group, another and releases", "GROUP N=3 RELEASES E=0 LEN=2 LAST=4 KEYS=3", slices.Concat(works, groups, releases)},
	{"trimming, longer", "TRIM E=0 AGE=2 RETENTION=3 LEN=2 LAST=8 KEYS=5", slices.Concat(works, trims)},
	{"trimming, uncertain clocks", "TRIM AGE=2 RETENTION=3 LEN=3 LAST=10 KEYS=5", slices.Concat(works, trims)},
	{"trimming in batches", "TRIM SPLIT BATCHES E=0 AGE=1 RETENTION=2 LEN=2 LAST=6 KEYS=4", slices.Concat(works, trims)},
	{"trimming and copies", "TRIM COPIES E=0 AGE=1 RETENTION=2 LEN=2 LAST=7 KEYS=5", slices.Concat(works, trims)},
	{"trimming and releases", "TRIM RELEASES E=0 AGE=1 RETENTION=2 LEN=2 LAST=5 KEYS=4", slices.Concat(works, trims, releases)},
	{"trimming, crashes, appends that land beside new ones", "TRIM CRASHES ZOMBIE E=0 AGE=1 RETENTION=2 LEN=2 LAST=5 KEYS=4", slices.Concat(works, trims, crashes)},
	{"trimming and three workers", "TRIM N=3 E=0 AGE=1 RETENTION=2 LEN=2 LAST=5 KEYS=3", slices.Concat(works, trims)},
	{"three workers that extend", "EXTENDS N=3 E=0 LEN=2 LAST=5 KEYS=3", slices.Concat(works, extends, refused)},
	{"three workers, windows in slots", "EXTENDS N=3 WINDOW=2 E=0 LEN=4 LAST=8 KEYS=3", slices.Concat(midSlot, extends, refused, takeOver)},
	{"extensions, releases and trimming", "EXTENDS TRIM RELEASES E=0 AGE=1 RETENTION=2 LEN=4 LAST=8 KEYS=3", slices.Concat(works, extends, releases, trims)},
	{"extensions, poison and trimming", "EXTENDS TRIM ROGUE E=0 AGE=0 RETENTION=1 LEN=2 LAST=5 KEYS=4", slices.Concat(works, extends, poisoned, trims)},
	{"extensions and a foreign record", "EXTENDS ROGUE VALID E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, extends, refused, resets, foreign)},
	{"three workers, once per slot", "ONCE N=3 E=0 LEN=2 LAST=5 KEYS=3", slices.Concat(works, jobs, afterNext)},
	{"once per slot and releases, longer", "ONCE RELEASES E=0 LEN=2 LAST=6 KEYS=5", slices.Concat(works, jobs, afterNext, retries, releases)},
	{"once per slot, extensions and releases", "ONCE EXTENDS RELEASES WINDOW=2 E=0 LEN=4 LAST=8 KEYS=4", slices.Concat(works, jobs, extends, retries, releases)},
	{"once per slot, extensions and trimming", "ONCE EXTENDS TRIM WINDOW=2 E=0 AGE=0 RETENTION=1 LEN=4 LAST=8 KEYS=3", slices.Concat(works, jobs, extends, trims)},
}

// longVariants are found after hundreds of thousands of states.
var longVariants = []broken{
	{"a late extension is as young as its append", "extensions, poison and trimming", "BREAK_KNOWN", "OVERLAP", "overlap"},
	{"a done record takes the term, and two work", "once per slot and releases, longer", "BREAK_DONE_TERM", "OVERLAP", "overlap"},
}

func TestTheModelHoldsInTheLongRun(t *testing.T) {
	if os.Getenv("SLOTLEASE_MODEL") != "long" {
		t.Skip("takes minutes and up to 1 GB for each processor: set SLOTLEASE_MODEL=long")
	}
	prove(t, "model-long", "make model", long, longVariants, large)
}
