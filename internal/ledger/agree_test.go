package ledger_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
)

// rule is the rule which records are obeyed, written once more, and shorter: record by record, down
// to the first that is in force. It knows less of what resets and overrides end, and judges a few of them otherwise.
type rule struct {
	records []store.Record // newest first
	latest  time.Time
}

func (v rule) poison(i int) bool {
	return ledger.Poison(v.records[i], v.latest, ledger.Ahead, ledger.Longest) != nil
}

func (v rule) contradicted(i int) bool {
	return i+1 < len(v.records) && v.records[i].Kind != store.KindReset && !v.poison(i+1) &&
		ledger.Contradicts(v.records[i+1], v.records[i]) != nil
}

func (v rule) obeys(i int) bool {
	r := v.records[i]
	ends := ledger.Supersedes(r)
	if v.poison(i) || !ends && v.contradicted(i) {
		return false
	}
	for j := i + 1; j < len(v.records); j++ {
		then := v
		if ends && ledger.Standard.Dated(r, v.records[j]) {
			then.latest = r.ReadAt
		}
		switch {
		case then.poison(j), ends && then.contradicted(j):
		case ledger.Contradicts(v.records[j], r) != nil:
			return false
		case r.Kind != store.KindOverride:
			return true
		}
	}
	return true
}

func TestTwoWritingsOfTheRuleAgree(t *testing.T) {
	n, _ := strconv.Atoi(cmp.Or(os.Getenv("SLOTLEASE_LEDGERS"), "20000"))
	obeyed, passed, ends, otherwise := 0, 0, 0, 0
	for seed := range uint64(n) {
		records, latest := randomLedger(rand.New(rand.NewPCG(seed, 1)))
		for i := range records {
			why := ledger.At(latest).Defect(records[i:])
			want := rule{records, latest}.obeys(i)
			if want {
				obeyed++
			} else {
				passed++
			}
			if ledger.Supersedes(records[i]) {
				ends++
			}
			if want == (why == nil) {
				continue
			}
			if ledger.Supersedes(records[i]) {
				otherwise++
				continue
			}
			t.Errorf("seed %d, at %s: Defect() = %v, and obeyed by the other writing: %v", seed, latest.Format(time.TimeOnly), why, want)
			for _, r := range records[i:] {
				t.Logf("%d %s %s %d [%s %s) read at %s %s", r.Seq, r.Kind, r.Claim, r.Token, r.WindowStart.Format(time.TimeOnly), r.WindowEnd.Format(time.TimeOnly), r.ReadAt.Format(time.TimeOnly), r.Defect)
			}
			return
		}
	}
	if obeyed < n || passed < n/2 || otherwise > ends/50 {
		t.Errorf("of %d ledgers %d records were obeyed and %d were not; of %d that end others, %d were judged otherwise", n, obeyed, passed, ends, otherwise)
	}
}

// randomLedger is a ledger of workers that keep the rules, but for some records that nobody who does can have written.
func randomLedger(r *rand.Rand) (records []store.Record, latest time.Time) {
	head, at := store.Record{WindowEnd: noon}, 0
	for seq := range 1 + r.IntN(7) {
		at += r.IntN(8)
		x := written(r, int64(seq)+1, at, head)
		spoil(r, &x, at)
		records = append([]store.Record{x}, records...)
		if x.Defect == "" {
			head = x
		}
	}
	return records, minute(at + r.IntN(30) - 8)
}

func minute(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// written is what a worker, or an operator, may append to a head at a time.
func written(r *rand.Rand, seq int64, at int, head store.Record) store.Record {
	kinds := []store.Kind{store.KindGrant, store.KindGrant, store.KindGrant, store.KindRelease, store.KindDone, store.KindReset, store.KindOverride}
	x := store.Record{
		WorkerType: "job", Seq: seq, Kind: kinds[r.IntN(len(kinds))], InstanceID: "a", ReadAt: minute(at), FixedAt: minute(at),
		Claim: cmp.Or(head.Claim, "first"), Token: max(head.Token, 1), WindowStart: head.WindowEnd, WindowEnd: head.WindowEnd,
	}
	start := minute(at)
	if start.Before(head.WindowEnd) {
		start = head.WindowEnd
	}
	switch x.Kind {
	case store.KindGrant:
		if head.Claim == "" || r.IntN(3) > 0 {
			x.Claim, x.Token = fmt.Sprint("claim ", r.IntN(4)), start.UnixMilli()
		}
		x.WindowStart, x.WindowEnd = start, start.Add(time.Duration(1+r.IntN(6))*time.Minute)
	case store.KindRelease:
		x.WindowStart, x.WindowEnd = minute(at), minute(at)
	case store.KindReset:
		x.Claim, x.Token = fmt.Sprint("claim of ", seq), max(minute(at).UnixMilli(), head.Token+1)
		x.WindowStart, x.WindowEnd = start, start
	case store.KindOverride:
		x.Claim, x.Token = fmt.Sprint("claim of ", seq), max(minute(at).UnixMilli(), head.Token+1)
		x.WindowStart, x.WindowEnd = minute(at), minute(at)
	case store.KindDone, store.KindOutcome, store.KindOrder, store.KindSighting:
	}
	return x
}

// spoil makes some records what nobody can have written.
func spoil(r *rand.Rand, x *store.Record, at int) {
	switch r.IntN(14) {
	case 0:
		x.Defect = "claim is missing"
	case 1:
		x.Token += int64(r.IntN(5)-2) * 60_000
	case 2:
		x.WindowStart, x.WindowEnd = x.WindowStart.Add(time.Duration(r.IntN(60)-20)*time.Minute), x.WindowEnd.Add(time.Duration(r.IntN(60)-20)*time.Minute)
		if x.WindowEnd.Before(x.WindowStart) {
			x.WindowEnd = x.WindowStart
		}
	case 3:
		x.Claim = fmt.Sprint("claim ", r.IntN(4))
	case 4:
		x.ReadAt = time.Time{}
	case 5:
		x.ReadAt = minute(at - r.IntN(90))
	case 6:
		x.WindowEnd = x.WindowStart.AddDate(2, 0, 0)
	}
}
