package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

const ms = time.Millisecond

// What doctor says is what its hints would otherwise name it for.
func TestARemedyDoesNotNameTheCommandThatShowsIt(t *testing.T) {
	target, err := storeuri.Parse("redis://h", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Scrub: func(text string) string { return text }}
	for err, want := range map[error]string{
		store.ErrDenied: "check user, password or keys, and what rights they have",
		&net.OpError{Op: "dial", Err: errors.New("no response")}: "check that the server runs, that host and port are right, and that its network lets this machine in",
	} {
		f := store.Finding{Level: store.LevelFail, Err: err}
		if o.finish(target, &f); f.Remedy != want {
			t.Errorf("the remedy of %v = %q, want %q", err, f.Remedy, want)
		}
	}
}

// wants fails unless a finding has a level, and says something: what was found, an arrow and the remedy.
func wants(t *testing.T, f store.Finding, level store.Level, says string) {
	t.Helper()
	if got := f.Text + " → " + f.Remedy; f.Level != level || !strings.Contains(got, says) || f.Level == store.LevelWarn && f.Remedy == "" {
		t.Errorf("%s is %s %q, want %s with %q", f.Check, f.Level, got, level, says)
	}
}

// read is a sample of a store whose clock is behind this machine's, over a trip of a length.
func read(at time.Time, behind, trip time.Duration) sample {
	return sample{sent: at, received: at.Add(trip), stamp: store.Stamp{Time: at.Add(trip / 2).Add(-behind), Granularity: ms}}
}

func TestAClockIsMeasuredBySeveralSamples(t *testing.T) {
	at := recordtest.Noon
	slow := read(at, 0, 8*time.Second)
	for name, c := range map[string]struct {
		samples []sample
		err     error
		slot    time.Duration
		level   store.Level
		says    string
	}{
		"equal clocks":              {samples: []sample{read(at, 0, 20*ms), read(at, 0, 10*ms)}, level: store.LevelOK, says: "as known to ±5.5ms: fit to lead slots of 5m0s"},
		"a store that is behind":    {samples: []sample{read(at, 90*time.Second, 10*ms)}, level: store.LevelWarn, says: "time of day is 1m30s ahead of store time, as known to ±5.5ms; no lease depends on it"},
		"a store that is ahead":     {samples: []sample{read(at, -90*time.Second, 10*ms)}, level: store.LevelWarn, says: "1m30s behind store time"},
		"a little behind":           {samples: []sample{read(at, 900*ms, 10*ms)}, level: store.LevelOK, says: "900ms ahead of store time"},
		"a clock that jumps":        {samples: []sample{read(at, 0, 10*ms), read(at, time.Second, 10*ms)}, level: store.LevelWarn, says: "jumped between two readings"},
		"a store that is too far":   {samples: []sample{slow}, slot: 5 * time.Second, level: store.LevelFail, says: "too uncertain to lead slots of 5s, which must be longer than 8.1s"},
		"one that is near enough":   {samples: []sample{slow, read(at, 0, 10*ms)}, slot: 5 * time.Second, level: store.LevelOK, says: "fit to lead slots of 5s"},
		"servers that are apart":    {samples: []sample{{sent: at, received: at, stamp: store.Stamp{Time: at, Skew: 3 * time.Second}}}, slot: 5 * time.Second, level: store.LevelFail, says: "±3s: too uncertain"},
		"a store that hangs":        {err: context.DeadlineExceeded, level: store.LevelSkip, says: "no answer in time"},
		"a store that is refused":   {err: fmt.Errorf("%w: capped", store.ErrRefused), level: store.LevelSkip, says: "see what failed"},
		"a store that answers late": {samples: []sample{read(at, 0, 10*ms)}, err: context.DeadlineExceeded, level: store.LevelOK, says: "fit"},
	} {
		if c.slot == 0 {
			c.slot = defaultSlot
		}
		t.Run(name, func(t *testing.T) { wants(t, judgeClock(c.samples, c.err, c.slot), c.level, c.says) })
	}
}

func TestRoundTripsAreJudgedByTheLead(t *testing.T) {
	for name, c := range map[string]struct {
		took  []time.Duration
		slot  time.Duration
		level store.Level
		says  string
	}{
		"fast":                      {[]time.Duration{ms, 2 * ms, 9 * ms}, defaultSlot, store.LevelOK, "a read takes 2ms, at most 9ms of 3; claims for slots of 5m0s open 10s before, and priorities claim 1s apart"},
		"slow for slots of 1 s":     {[]time.Duration{20 * ms, 20 * ms, 20 * ms}, time.Second, store.LevelWarn, "so slow that priorities claim later"},
		"fast enough for 5 min":     {[]time.Duration{20 * ms, 20 * ms, 20 * ms}, defaultSlot, store.LevelOK, "a read takes 20ms"},
		"one that takes very long":  {[]time.Duration{ms, ms, 6 * time.Second}, defaultSlot, store.LevelWarn, "at most 6s of 3"},
		"a slot that none can have": {[]time.Duration{ms}, time.Nanosecond, store.LevelOK, "a read takes 1ms"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, judgeTrips(c.took, nil, c.slot), c.level, c.says) })
	}
	wants(t, judgeTrips(nil, errors.New("odd"), defaultSlot), store.LevelSkip, "the store answered: odd")
}

// of is the ledger of a type with some records, newest first.
func of(name string, records ...store.Record) ledger {
	l := ledger{name: name, records: records}
	for i := range records {
		records[i].WorkerType = name
	}
	if len(records) > 0 {
		l.oldest, l.count = records[len(records)-1], int64(len(records))
	}
	return l
}

func TestALongLedgerIsOneThatNobodyTrims(t *testing.T) {
	now := recordtest.Noon.AddDate(0, 0, 10)
	at := func(count int64, days int) ledger {
		return ledger{name: "export", count: count, oldest: store.Record{FixedAt: now.AddDate(0, 0, -days)}}
	}
	for name, c := range map[string]struct {
		ledgers []ledger
		level   store.Level
		says    string
	}{
		"no records":                    {nil, store.LevelOK, "no records yet"},
		"many of a day":                 {[]ledger{at(100_000, 1)}, store.LevelOK, "100000 records, 100000 of export"},
		"few of years":                  {[]ledger{at(100, 900)}, store.LevelOK, "100 records"},
		"many of ten days":              {[]ledger{of("small"), at(5000, 10)}, store.LevelWarn, "export has 5000 records, the oldest of 2026-03-02: nobody trims → let a worker lead that may delete"},
		"many whose age is not known":   {[]ledger{{name: "export", count: 5000}}, store.LevelOK, "5000 records"},
		"many, and less than a batch's": {[]ledger{at(600, 10)}, store.LevelOK, "600 records"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, judgeLength(c.ledgers, now), c.level, c.says) })
	}
}

func TestWorkerTypesThatDifferByCaseOnlyAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		types inspect.Types
		named string
		level store.Level
		says  string
	}{
		"none":                {level: store.LevelOK, says: "no records yet"},
		"two":                 {types: inspect.Types{Valid: []string{"export", "mail"}}, level: store.LevelOK, says: "export, mail"},
		"two by case":         {types: inspect.Types{Valid: []string{"Export", "export", "mail"}}, level: store.LevelWarn, says: "Export and export differ in case only → let all workers use one of the names"},
		"an invalid one":      {types: inspect.Types{Valid: []string{"export"}, Invalid: []string{"a\x1bb"}}, level: store.LevelWarn, says: `names that no worker type can have: invalid ones: "a\x1bb"`},
		"one that is missing": {types: inspect.Types{Valid: []string{"export"}}, named: "exports", level: store.LevelWarn, says: "there are no records of exports; the ledger has export"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, judgeTypes(c.types, c.named, nil), c.level, c.says) })
	}
	wants(t, judgeTypes(inspect.Types{}, "", errors.New("odd")), store.LevelSkip, "odd")
}

func TestWhatBlocksTheHeadIsShown(t *testing.T) {
	now := recordtest.Minutes(21)
	grant := func(seq int64, n int) store.Record { return recordtest.Grant(seq, n, "a") }
	long := recordtest.Part(3, grant(3, 4), 20, 9000)
	poison := store.Record{WorkerType: "export", Seq: 3, Defect: "windowEnd is missing"}
	late, monthly := grant(3, 40), recordtest.Part(2, grant(2, 0), 0, 60*24*30)
	monthly.SlotEnd, monthly.Schedule = monthly.WindowEnd, "once a month"
	month := recordtest.Part(3, grant(3, 4), 20, 60*24*30)
	month.Token += (365 * 24 * time.Hour).Milliseconds()
	for name, c := range map[string]struct {
		l     ledger
		level store.Level
		says  string
	}{
		"a healthy one":        {of("export", grant(2, 4), grant(1, 3)), store.LevelOK, "workers can obey the newest records"},
		"an empty one":         {of("export"), store.LevelOK, "workers can obey"},
		"a window of days":     {of("export", long, grant(2, 3), grant(1, 2)), store.LevelFail, "export: record 3 leaves nothing to claim until 2026-03-08T18:00:00.000Z → leasectl override --worker-type export --seq 3 --store sqlite:x.db"},
		"poison":               {of("export", poison, grant(2, 3), grant(1, 2)), store.LevelWarn, "export: workers can't obey record 3: windowEnd is missing → workers supersede record 3 of export about 10m after one of them has seen it; to end it now: leasectl override --worker-type export --seq 3 --store sqlite:x.db; find the program"},
		"a window of a month":  {of("export", month, grant(2, 3)), store.LevelWarn, "about 24h5m after"},
		"in a slot of a month": {of("export", poison, monthly), store.LevelWarn, "about 24h5m after"},
		"above a free key":     {of("export", grant(7, 4), grant(2, 3)), store.LevelWarn, "workers go on there → find the program"},
		"a grant from beyond":  {of("export", late, grant(2, 3), grant(1, 2)), store.LevelWarn, "; it was written at 2026-03-02T15:19:51.000Z by the store's clock, which was set back since, most likely: see the checks of clocks; if not, find the program"},
		"nothing but poison":   {of("export", store.Record{Seq: 207, Defect: "odd"}, store.Record{Seq: 206, Defect: "odd"}), store.LevelFail, "export: nothing but records that can't be obeyed is left"},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, judgeHead([]ledger{of("other"), c.l}, now, storeuri.Target{Scheme: storeuri.SQLite, Shown: "sqlite:x.db"}), c.level, c.says)
		})
	}
	both := []ledger{of("p", poison, grant(2, 3)), of("b", long, grant(2, 3))}
	wants(t, judgeHead(both, now, storeuri.Target{}), store.LevelFail, "b: record 3 leaves nothing")
	wants(t, judgeHead(both, now, storeuri.Target{}), store.LevelFail, "; p: workers can't obey record 3: ")
	wants(t, judgeHead(both, now, storeuri.Target{}), store.LevelFail, "--worker-type b --seq 3; workers supersede record 3 of p about 10m after")
	two := []ledger{of("p", poison, grant(2, 3)), of("q", poison, grant(2, 3))}
	wants(t, judgeHead(two, now, storeuri.Target{}), store.LevelWarn, "; q: workers can't obey record 3: ")
}

// An operator's order may be why nobody works.
func TestOrdersThatKeepWorkersFromClaimingAreShown(t *testing.T) {
	now := recordtest.Minutes(42)
	with := func(name string, orders ...store.Order) ledger {
		r := recordtest.Grant(1, 8, "a")
		for i := range orders {
			orders[i].At, orders[i].Until, orders[i].By = recordtest.Minutes(40), recordtest.Minutes(60), "ann"
		}
		r.Orders, _ = store.FormatOrders(orders)
		return of(name, r)
	}
	over := with("old", store.Order{Kind: store.OrderPause})
	pause, drain, prefer := store.Order{Kind: store.OrderPause, Why: "upgrade"}, store.Order{Kind: store.OrderDrain, Target: "db-7"}, store.Order{Kind: store.OrderPrefer, Target: "b"}
	for name, c := range map[string]struct {
		ledgers []ledger
		now     time.Time
		level   store.Level
		says    string
	}{
		"none":       {[]ledger{of("export", recordtest.Grant(1, 8, "a")), of("empty")}, now, store.LevelOK, "none is in force"},
		"over":       {[]ledger{over}, recordtest.Minutes(61), store.LevelOK, "none is in force"},
		"preference": {[]ledger{with("export", prefer)}, now, store.LevelOK, "export: prefers b until 2026-03-02T13:00:00.000Z by ann"},
		"pause":      {[]ledger{with("a", prefer), with("export", pause)}, now, store.LevelWarn, "export: paused until 2026-03-02T13:00:00.000Z by ann: upgrade; a: prefers b until 2026-03-02T13:00:00.000Z by ann → if that is over, leasectl resume --worker-type export"},
		"drain":      {[]ledger{with("export", drain)}, now, store.LevelWarn, "export: drains host db-7 until 2026-03-02T13:00:00.000Z by ann → if that is over, leasectl resume --worker-type export --kind drain --host db-7"},
		"a copy":     {[]ledger{with("export", store.Order{Kind: store.OrderPause, Target: store.PauseOfMove(store.MoveLeaving, "x")})}, now, store.LevelWarn, "→ if no leasectl copy of export runs any more, repeat it, or give it up: leasectl resume --worker-type export"},
		"both":       {[]ledger{with("export", pause, drain)}, now, store.LevelWarn, "export: drains host db-7"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, judgeOrders(c.ledgers, c.now, storeuri.Target{}), c.level, c.says) })
	}
}

func TestTwoSchedulesInOneTypeAreFound(t *testing.T) {
	grants := func(schedules ...string) (all []store.Record) {
		for i, s := range schedules {
			r := recordtest.Grant(int64(len(schedules)-i), len(schedules)-i, "a")
			if r.Schedule = s; s == "every 1m" {
				r.SlotEnd = r.SlotStart.Add(time.Minute)
			}
			all = append(all, r)
		}
		return all
	}
	worker := func(schedule string, present bool) workerlease.Candidate {
		return workerlease.Candidate{Presence: store.Presence{WorkerType: "export", Schedule: schedule}, Present: present}
	}
	for name, c := range map[string]struct {
		records []store.Record
		workers []workerlease.Candidate
		level   store.Level
		says    string
	}{
		"one":                           {records: grants("every 5m", "every 5m"), level: store.LevelOK, says: "one for each"},
		"one that was changed":          {records: grants("every 1m", "every 1m", "every 5m"), level: store.LevelOK, says: "one for each"},
		"two by turns":                  {records: grants("every 5m", "every 1m", "every 5m"), level: store.LevelWarn, says: `export has "every 1m" and "every 5m" → give all workers of the type one schedule: `},
		"two by the zones of machines":  {workers: []workerlease.Candidate{worker("cron 30 2 * * * Europe/Berlin", true), worker("cron 30 2 * * * America/New_York", true)}, level: store.LevelWarn, says: `export has "cron 30 2 * * * Europe/Berlin" and "cron 30 2 * * * America/New_York" → give all workers of the type one time zone: CRON_TZ in a crontab, zone in jobs.yaml, --zone: they exclude each other`},
		"runs that were asked for":      {records: grants("every 5m", store.Triggered, "every 5m"), level: store.LevelOK, says: "one for each"},
		"two by the workers":            {workers: []workerlease.Candidate{worker("every 5m", true), worker("every 1m", true)}, level: store.LevelWarn, says: `"every 5m" and "every 1m"`},
		"two texts for the same slots":  {records: grants("every 5m", "cron */5 * * * *", "every 5m"), workers: []workerlease.Candidate{worker("cron 0-55/5 * * * *", true)}, level: store.LevelOK, says: "one for each"},
		"one in a zone that moved":      {records: grants("cron 0 12 * * * Etc/GMT+8"), level: store.LevelWarn, says: `is that of 2026-03-01T20:00:00.000Z here → give all machines, and this one, the same release of the tz database`},
		"another of a worker that left": {workers: []workerlease.Candidate{worker("every 5m", true), worker("every 1m", false)}, level: store.LevelOK, says: "one for each"},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, judgeSchedules([]ledger{of("export", c.records...)}, c.workers, recordtest.Noon), c.level, c.says)
			if len(c.records) == 0 { // So it is for a worker type that only the roster knows.
				wants(t, judgeSchedules([]ledger{of("other")}, c.workers, recordtest.Noon), c.level, c.says)
			}
		})
	}
}

func TestWorkersThatAreMissingOrHaveAWrongClockAreNamed(t *testing.T) {
	worker := func(name string, present bool, offset time.Duration) workerlease.Candidate {
		return workerlease.Candidate{Presence: store.Presence{
			WorkerType: "export", InstanceID: name, Host: "h1", Phase: store.PhaseCandidate, Offset: offset, Uncertainty: 5 * ms, Seen: recordtest.Noon,
		}, Present: present}
	}
	holder := worker("b", false, 0)
	holder.Holds = true
	on := func(host string, w workerlease.Candidate, offset, uncertainty time.Duration) workerlease.Candidate {
		w.Host, w.Offset, w.Uncertainty = host, offset, uncertainty
		return w
	}
	stopped := worker("gone", false, 0)
	stopped.Phase = store.PhaseStopped
	ledgers := []ledger{of("export"), of("unknown")}
	does := func(work, name string) workerlease.Candidate {
		w := worker(name, true, 0)
		w.Work = work
		return w
	}
	waiting := worker("a", true, 0)
	waiting.Missed = "nobody had it: store went back"
	for name, c := range map[string]struct {
		workers      []workerlease.Candidate
		unlisted     error
		err          error
		level, clock store.Level
		says, clocks string
	}{
		"all there":              {workers: []workerlease.Candidate{worker("a", true, 40*ms), stopped}, level: store.LevelOK, says: "1 of 2 are there; the others have stopped", clock: store.LevelOK, clocks: "those of 1 workers are right"},
		"all":                    {workers: []workerlease.Candidate{worker("a", true, 0), worker("b", true, 0)}, level: store.LevelOK, says: "all 2 are there", clock: store.LevelOK},
		"a store that is behind": {workers: []workerlease.Candidate{worker("a", true, 5*time.Minute), on("h2", worker("b", true, 0), 5*time.Minute+40*ms, 5*ms)}, level: store.LevelOK, clock: store.LevelWarn, clocks: "→ these machines agree, so look at the clock of the store first"},
		"known by 300 ms or so":  {workers: []workerlease.Candidate{on("h1", worker("a", true, 0), 5*time.Minute, 300*ms), on("h2", worker("b", true, 0), 5*time.Minute+40*ms, 300*ms)}, level: store.LevelOK, clock: store.LevelWarn, clocks: "→ these machines agree, so look at the clock of the store first"},
		"two on one machine":     {workers: []workerlease.Candidate{worker("a", true, 5*time.Minute), worker("b", true, 5*time.Minute)}, level: store.LevelOK, clock: store.LevelWarn, clocks: "→ set these machines' clocks (NTP)"},
		"two that are off":       {workers: []workerlease.Candidate{worker("a", true, 5*time.Minute), worker("b", true, -5*time.Minute)}, level: store.LevelOK, clock: store.LevelWarn, clocks: "→ set these machines' clocks (NTP)"},
		"one missing":            {workers: []workerlease.Candidate{worker("a", true, 0), worker("b\x1b[2J", false, time.Hour)}, level: store.LevelWarn, says: "missing: b�[2J on h1 of export, last seen 2026-03-02T12:00:00.000Z", clock: store.LevelOK},
		"a holder missing":       {workers: []workerlease.Candidate{worker("a", true, 0), holder}, level: store.LevelWarn, says: "missing: b on h1 of export, last seen 2026-03-02T12:00:00.000Z, and its lease is in force → see whether they died, or can't reach the store: leasectl inspect workers; leasectl release --force ends the lease of one that died", clock: store.LevelOK},
		"a store that went back": {workers: []workerlease.Candidate{waiting, worker("b", true, 0)}, level: store.LevelWarn, says: "they claimed nothing for that: a on h1 of export → find out whether the store was flushed", clock: store.LevelOK},
		"a list that lacks some": {workers: []workerlease.Candidate{worker("a", true, 0)}, unlisted: errors.New("roster:mail is no hash"), level: store.LevelWarn, says: "roster:mail is no hash → until that is done, nothing is known", clock: store.LevelOK},
		"a list that lacks all":  {unlisted: errors.New("roster:mail is no hash"), level: store.LevelWarn, says: "roster:mail is no hash", clock: store.LevelSkip},
		"two commands":           {workers: []workerlease.Candidate{does("bill 12ab", "a"), does("", "b"), does("backup 34cd", "c")}, level: store.LevelWarn, says: "they run different commands under one worker type: export has bill 12ab by a and backup 34cd by c → give each command a worker type of its own", clock: store.LevelOK},
		"one command":            {workers: []workerlease.Candidate{does("bill 12ab", "a"), does("bill 12ab", "b")}, level: store.LevelOK, clock: store.LevelOK},
		"nobody left":            {workers: []workerlease.Candidate{worker("a", false, 0)}, level: store.LevelWarn, says: "nobody of the roster is left for export → start a worker, or see whether those that were there reach the store", clock: store.LevelOK},
		"a wrong clock":          {workers: []workerlease.Candidate{worker("a", true, -3*time.Second), worker("b", true, 0)}, level: store.LevelOK, clock: store.LevelWarn, clocks: "that of a on h1 is 3s behind store time (±5ms) → set these machines' clocks"},
		"an empty roster":        {level: store.LevelSkip, says: "nobody is in the roster", clock: store.LevelSkip},
		"no roster":              {err: errors.ErrUnsupported, level: store.LevelSkip, says: "keeps no roster", clock: store.LevelSkip},
		"an overwritten roster":  {err: fmt.Errorf("roster:mail is no hash: %w", store.ErrRefused), level: store.LevelWarn, says: "roster:mail is no hash", clock: store.LevelSkip},
		"an odd roster":          {err: errors.New("odd"), level: store.LevelSkip, says: "odd", clock: store.LevelSkip},
		"only stopped one":       {workers: []workerlease.Candidate{stopped}, level: store.LevelWarn, says: "nobody of the roster is left", clock: store.LevelOK},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, judgeWorkers(c.workers, c.unlisted, ledgers, c.err), c.level, c.says)
			wants(t, judgeClocks(c.workers, c.err), c.clock, c.clocks)
		})
	}
}

func TestHintsAreJudgedByWhatAWatchSays(t *testing.T) {
	wants(t, judgeHints(nil), store.LevelOK, "a watch lasted")
	wants(t, judgeHints(fmt.Errorf("watch: %w: a pooler is between", errors.ErrUnsupported)), store.LevelSkip, "a pooler is between")
	wants(t, judgeHints(fmt.Errorf("watch: %w: connection limit", store.ErrDenied)), store.LevelWarn, "connection limit")
}

// silenced is a ledger whose watches end with an error.
type silenced struct {
	store.Ledger

	err error
}

func (s silenced) Watch(context.Context, func(string)) error { return s.err }

func TestALedgerIsWatchedWhileTheOthersAreAsked(t *testing.T) {
	l := memory.New(memory.Options{})
	if err := watch(t.Context(), l)(); err != nil {
		t.Errorf("a watch of a store that gives hints = %v, want nil", err)
	}
	wants(t, judgeHints(watch(t.Context(), struct{ store.Ledger }{l})()), store.LevelSkip, "the store gives none")
	broken := errors.New("broken")
	var err error
	for end, ok := t.Deadline(); err == nil && (!ok || time.Now().Before(end.Add(-time.Second))); { // On a busy machine it may be late.
		err = watch(t.Context(), silenced{l, broken})()
	}
	if !errors.Is(err, broken) {
		t.Errorf("a watch that fails = %v, want why", err)
	}
}
