package inspect

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// FuzzSnapshot shows the ledger of two records and a release, whatever they hold,
// as a table and as JSON.
func FuzzSnapshot(f *testing.F) {
	f.Add("grant\nevery 5m\ni\n\n", int64(1), int64(0), int64(300_000), int64(1), int64(60_000), byte(0))
	f.Add("release\ncron 0 2 29 2 *\ni\ng\n\xff", int64(7), int64(-1), int64(1<<60), int64(-5), int64(1<<41), byte(1))
	f.Add("\n\n\n\n", int64(0), int64(0), int64(0), int64(0), int64(0), byte(2))
	f.Add("grant\ncron */5 * * * * Europe/Berlin\na\x1b[2J\n\u202eg\nline\nline", int64(1), int64(1_772_452_800_000), int64(300_000), int64(9), int64(3_000_000), byte(3))
	f.Add("done\nevery 100ms\ni\ng\nm", int64(1<<53), int64(1_772_452_800_000), int64(0), int64(9), int64(64*1000), byte(4))
	f.Add("grant\nevery 5m\ni\n\n", int64(1), int64(1_772_452_800_000), int64(100_000), int64(1_772_452_800_000), int64(60_000), byte(2+8+16))
	f.Add("grant\nevery 5m\ni\n\n", int64(1), int64(1_772_452_800_000), int64(300_000), int64(1_772_452_800_000), int64(60_000), byte(8))
	f.Add("grant\nevery 5m\ni\n\n", int64(1), int64(1_772_452_800_000), int64(300_000), int64(1_772_452_800_000), int64(60_000), byte(2+32))
	f.Add("grant\nevery 100ms\ni\n\n", int64(1), int64(1_772_452_800_000), int64(100), int64(1_772_452_800_000), int64(64_000), byte(4+32))
	f.Add("grant\nevery 5m\na\u202e\u200b\u009b\x7f\u3164\n工人e\u0301\n\u2028\ufeff\U000e0041", int64(1), int64(1_772_452_800_000), int64(300_000), int64(9), int64(3_000_000), byte(0))
	// Inputs that the fuzzer found, of which each reaches something else.
	f.Add("grant\ncron */5 * * * * Eu5 * * * rope/Berlin\na", int64(1), int64(1772452799909), int64(300000), int64(9), int64(3000000), byte('\u0082'))
	f.Add("grant\nevery 5m\ni", int64(1), int64(99), int64(300000), int64(1), int64(59928), byte('\x00'))
	f.Add("grant\ncron */5 5 * 6 * Europe/Berlin\na", int64(1), int64(1772452799963), int64(300036), int64(30), int64(3000009), byte('W'))
	f.Add("vX\xf2G\xc18", int64(-65), int64(-89), int64(-1), int64(57), int64(-14), byte('*'))
	f.Fuzz(func(t *testing.T, words string, seq, start, length, token, later int64, how byte) {
		text := strings.SplitN(words, "\n", 5)
		for len(text) < 5 {
			text = append(text, "")
		}
		r := store.Record{
			WorkerType: "t", Seq: seq, Kind: store.Kind(text[0]), InstanceID: text[2], Group: text[3], Claim: "c", Token: token, Schedule: text[1], Metadata: text[4],
			WindowStart: store.FromMillis(start), WindowEnd: store.FromMillis(start + length), SlotStart: store.FromMillis(start), SlotEnd: store.FromMillis(start + length),
			FixedAt: store.FromMillis(start - later),
		}
		if how&1 != 0 {
			r.SlotStart, r.SlotEnd, r.FixedAt = time.Time{}, time.Time{}, time.Time{}
		}
		next, end := r, r
		next.Seq, next.Token, next.Claim, next.WindowStart, next.WindowEnd = seq+1, token+1, "d", r.WindowEnd, store.FromMillis(start+2*length)
		next.SlotStart, next.SlotEnd = next.WindowStart, next.WindowEnd
		if how&8 != 0 {
			next.Token, next.Claim = r.Token, r.Claim // an extension
		}
		if how&16 != 0 {
			next.SlotStart, next.SlotEnd = r.SlotStart, r.SlotEnd
		}
		end.Seq, end.Kind, end.WindowStart, end.WindowEnd = seq+2, store.KindRelease, store.FromMillis(start+length/2), store.FromMillis(start+length/2)
		if how&32 != 0 {
			// A job of each slot, which is done; or of the one before.
			next.Attempt, end.Kind, end.DoneUntil = int(token%(store.MaxAttempt+1)), store.KindDone, r.WindowStart
			if later%2 == 0 {
				end.DoneUntil = next.WindowEnd
			}
			r.DoneUntil = store.FromMillis(start - later)
		}
		tail := []store.Record{end, next, r}[how>>1%3:]
		if later%64 != 0 {
			// Slots that nobody claimed are counted one by one.
			later %= 2 * time.Hour.Milliseconds()
		}
		now := store.FromMillis(start + length + later)
		rows := history.Read(tail, now, nil)
		for _, e := range rows {
			if e.State == history.Missed && (e.Slot.IsZero() || e.Slot.End.After(now) && e.Slot.End.After(next.WindowEnd)) {
				t.Errorf("Read() = missed %v at %v", e.Slot, now)
			}
		}
		s := snapshot{glimpse: glimpse{at: now, store: "sqlite:x.db"}, workerType: "t", rows: rows}
		for _, line := range s.tableLines(false) {
			if strings.IndexFunc(line, func(r rune) bool { return display.Hidden(r) || !unicode.IsPrint(r) }) >= 0 {
				t.Errorf("the table has the line %q, want what can be shown", line)
			}
		}
		var encoded bytes.Buffer
		must(t, writeJSON(&encoded, s, how&64 != 0))
		if display.Text(encoded.String()) != encoded.String() {
			t.Errorf("the JSON is %q, want escapes for what can't be shown", encoded.String())
		}
		wantInJSON(t, encoded.Bytes(), rows)
	})
}

// wantInJSON demands that rows can be read back from JSON.
func wantInJSON(t *testing.T, encoded []byte, rows []history.Entry) {
	t.Helper()
	var decoded Snapshot
	reader := json.NewDecoder(bytes.NewReader(encoded))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&decoded); err != nil || len(decoded.Slots) != len(rows) {
		t.Fatalf("%s: decoded %d slots, %v, want %d", encoded, len(decoded.Slots), err, len(rows))
	}
	// What is no UTF-8 is replaced, byte by byte.
	plain := func(s string) string { return string([]rune(s)) }
	for i, e := range rows {
		got, r := decoded.Slots[i], e.Record
		if got.Seq != r.Seq || got.Token != r.Token || string(got.State) != plain(string(e.State)) || got.Kind != plain(string(r.Kind)) ||
			got.InstanceID != plain(r.InstanceID) || got.Group != plain(r.Group) || got.Note != plain(e.Note()) || max(1, got.MissedSlots) != e.Count || got.Attempt != e.Attempt || got.Extended != e.Extensions || got.NewestSeq != e.NewestSeq {
			t.Errorf("%s: slot %d is not %+v", encoded, i, e)
		}
		if (got.ClaimedMs != nil) != e.ClaimKnown || e.ClaimKnown && *got.ClaimedMs != e.Claimed.Milliseconds() {
			t.Errorf("%s: slot %d was claimed at %v", encoded, i, e.Claimed)
		}
		o := e.Outcome
		took, timed := o.Took()
		if (got.Result != "") != e.OutcomeKnown || got.Result != o.Result || got.GivenUp != o.GivenUp || got.Error != o.Error || got.WorkedBy != o.InstanceID ||
			(got.ExitCode != nil) != o.Exited || o.Exited && *got.ExitCode != o.ExitCode || (got.TookMs != nil) != timed || timed && *got.TookMs != took.Milliseconds() {
			t.Errorf("%s: slot %d came to %+v", encoded, i, o)
		}
		if (got.Priority != nil) != (r.Seq != 0 && r.Defect == "") || got.Priority != nil && *got.Priority != r.Priority {
			t.Errorf("%s: slot %d has not the priority of %+v", encoded, i, e)
		}
		for _, at := range []struct {
			got  string
			want time.Time
		}{{got.SlotStart, e.Slot.Start}, {got.SlotEnd, e.Slot.End}, {got.WindowStart, e.Window.Start}, {got.WindowEnd, e.Window.End}, {got.ReleasedAt, e.ReleasedAt}, {got.BegunAt, o.Begun}, {got.EndedAt, o.Ended}} {
			if at.got == "" && (at.want.IsZero() || at.want.Year() < 0 || at.want.Year() > 9999) {
				continue
			}
			if parsed, err := time.Parse(time.RFC3339, at.got); err != nil || !parsed.Equal(at.want) {
				t.Errorf("%s: slot %d has the time %q (%v), want %v", encoded, i, at.got, err, at.want)
			}
		}
	}
}
