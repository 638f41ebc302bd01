package app

import (
	"context"
	"database/sql"
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/doctor"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
)

// examined is what doctor finds, by the names of the checks.
func examined(t *testing.T, env []string, args ...string) (map[string]store.Finding, doctor.JSON, output) {
	t.Helper()
	got := leasectl(t, env, append([]string{"doctor", "--output", "json"}, args...)...)
	var r doctor.JSON
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatalf("leasectl doctor %q = %+v, %v, want one object", args, got, err)
	}
	found := map[string]store.Finding{}
	for _, f := range r.Checks {
		if _, twice := found[f.Check]; twice {
			t.Errorf("leasectl doctor has two lines of %s: %s", f.Check, got.stdout)
		}
		found[f.Check] = f
	}
	if want := got.code == exit.OK; r.Sound != want || !want && got.code != exit.Unsound {
		t.Errorf("leasectl doctor ended with %d, and sound is %v: %s", got.code, r.Sound, got.stdout)
	}
	return found, r, got
}

// wantCheck fails unless a check has a level, and says something: what was found, an arrow and the remedy.
func wantCheck(t *testing.T, found map[string]store.Finding, check string, level store.Level, says string) {
	t.Helper()
	if f := found[check]; f.Level != level || !strings.Contains(f.Text+" → "+f.Remedy, says) {
		t.Errorf("doctor finds %s %s %q → %q, want %s with %q", f.Check, f.Level, f.Text, f.Remedy, level, says)
	}
}

// fill appends three grants of slots of 5 min, the newest of which is in force.
func fill(t *testing.T, l store.Ledger) {
	t.Helper()
	must(t, l.Init(t.Context()))
	for i, r := range grantsUntil(storeTime(t, l), 3) {
		r.Seq = int64(i + 1)
		must(t, l.Append(t.Context(), r))
	}
}

// grantsUntil are grants of successive slots, the last of which is in force at a time.
func grantsUntil(now time.Time, n int) (all []store.Record) {
	newest := int(now.Sub(recordtest.Noon) / (5 * time.Minute))
	for i := range n {
		r := recordtest.Grant(0, newest-n+1+i, "a")
		all = append(all, r)
	}
	return all
}

// masks are what differs from run to run.
var masks = []struct{ of, by string }{
	{`(?m)^(?:ok|warn|skip) +ntp .*$`, "LEVEL ntp                  TEXT"},
	{`sqlite:\S+|mongodb://\S+|cosmos://\S+|/\S*/leases\.db`, "PLACE"},
	{`leasectl_\d+`, "DATABASE"},
	{`127\.0\.0\.1:\d+, \S+ [\d.]+`, "HOST, MongoDB VERSION"},
	{`127\.0\.0\.1:\d+`, "HOST"},
	{`\d{4}-\d\d-\d\dT[\d:.]+Z`, "TIME"},
	{`\b\d[\d.]*(?:h|m|s|ms|µs|ns)(?:[\d.]+[ms])*\b`, "D"},
	{`D (?:ahead of|behind)`, "D beside"},
	{`[\d.]+ RU`, "N RU"},
	{`\d+ ok, \d+ to see to`, "N ok, N to see to"},
}

func maskedReport(text string) string {
	for _, m := range masks {
		text = regexp.MustCompile(m.of).ReplaceAllString(text, m.by)
	}
	return text
}

func TestAHealthyStoreIsShownSo(t *testing.T) {
	suites.RealTime(t)
	for name, open := range map[string]func(t *testing.T) (store.Ledger, string){
		"sqlite": newLedger,
		"mongo":  mongoLedger,
		"cosmos": sharedCosmosLedger,
	} {
		t.Run(name, func(t *testing.T) {
			l, uri := open(t)
			fill(t, l)
			env := []string{storeuri.Variable + "=" + uri, cosmos.KeyVariable + "=" + cosmospeer.Key()}
			got := leasectl(t, env, "doctor")
			if got.code != exit.OK || got.stderr != "" {
				t.Errorf("leasectl doctor = %+v, want nothing wrong", got)
			}
			if name == "mongo" && os.Getenv("MONGODB_URI") != "" {
				t.Skip("MONGODB_URI is set: a real server says more of itself")
			}
			_, r, _ := examined(t, env)
			if d := store.Describe(l).Durability(); r.Durability == nil || r.Durability.Crash != d.Crash || r.Durability.Power != d.Power || r.Durability.Failover == "" {
				t.Errorf("leasectl doctor --output json has the durability %+v, want what the store says: %+v", r.Durability, d)
			}
			golden.Compare(t, "doctor_"+name+".txt", maskedReport(got.stdout))
			before, _, _ := l.Tail(t.Context(), "export", 9)
			types, err := l.WorkerTypes(t.Context())
			if len(before) != 3 || len(types) != 1 || err != nil {
				t.Errorf("after doctor there are %d records of %q, %v, want that nothing was stored", len(before), types, err)
			}
		})
	}
}

// Faults that only a whole ledger shows. The stores' own tests plant those of stores.
func TestAFaultOfALedgerIsFound(t *testing.T) {
	change := func(statements ...string) func(t *testing.T, l store.Ledger, path string) {
		return func(t *testing.T, _ store.Ledger, path string) {
			t.Helper()
			alter(t, path, statements...)
		}
	}
	appends := func(records func(now time.Time) []store.Record) func(t *testing.T, l store.Ledger, path string) {
		return func(t *testing.T, l store.Ledger, _ string) {
			t.Helper()
			for i, r := range records(storeTime(t, l)) {
				if r.Seq = int64(i + 4); r.WorkerType != "export" {
					r.Seq = int64(i + 1)
				}
				must(t, l.Append(t.Context(), r))
			}
		}
	}
	for name, c := range map[string]struct {
		plant func(t *testing.T, l store.Ledger, path string)
		check string
		level store.Level
		says  string
	}{
		"a trigger": {change(`CREATE TRIGGER drops BEFORE INSERT ON WorkerLeases BEGIN SELECT RAISE(IGNORE); END`), store.CheckConstraints, store.LevelFail, "the trigger 'drops'"},
		"worker types that differ by case": {appends(func(now time.Time) []store.Record {
			r := grantsUntil(now, 1)[0]
			r.WorkerType = "Export"
			return []store.Record{r}
		}), "worker-types", store.LevelWarn, "Export and export differ in case only"},
		"a worker type that is none": {change(`UPDATE WorkerLeases SET workerType = 'a' || char(27) || '[2J' WHERE seq = 1`), "worker-types", store.LevelWarn, `"a\x1b[2J"`},
		"poison":                     {change(`UPDATE WorkerLeases SET windowEnd = NULL WHERE seq = 3`), "head", store.LevelWarn, "export: workers can't obey record 3: "},
		"a block": {appends(func(now time.Time) []store.Record {
			r := grantsUntil(now, 1)[0]
			r.WindowStart, r.WindowEnd = r.WindowEnd, r.WindowEnd.AddDate(0, 1, 0)
			r.Token, r.Claim = r.WindowStart.UnixMilli(), "another"
			return []store.Record{r}
		}), "head", store.LevelFail, "export: record 4 leaves nothing to claim until "},
		"a record that can't be reached": {change(`INSERT INTO WorkerLeases (workerType, seq, kind, instanceId, claim) VALUES ('export', 9007199254740993, 'grant', 'a', 'c')`), "unreachable-records", store.LevelWarn, "export ("},
		"two schedules": {appends(func(now time.Time) []store.Record {
			r := grantsUntil(now, 1)[0]
			r.Kind, r.WindowStart, r.WindowEnd = store.KindGrant, r.WindowEnd, r.WindowEnd.Add(time.Minute)
			r.Token, r.Claim, r.Schedule = r.WindowStart.UnixMilli(), "another", "every 1m"
			next := r
			next.WindowStart, next.WindowEnd, next.Schedule = r.WindowEnd, r.WindowEnd.Add(time.Minute), "every 5m"
			next.Token, next.Claim = next.WindowStart.UnixMilli(), "a third"
			return []store.Record{r, next}
		}), "schedules", store.LevelWarn, `export has "every 1m" and "every 5m"`},
		"a worker with a wrong clock": {func(t *testing.T, l store.Ledger, _ string) {
			t.Helper()
			attend(t, l, store.Presence{InstanceID: "late\x1b[2J", Offset: -time.Minute, Uncertainty: time.Millisecond})
		}, "worker-clocks", store.LevelWarn, "that of late�[2J is 1m0s behind store time (±1ms)"},
		"a worker that died": {func(t *testing.T, l store.Ledger, _ string) {
			t.Helper()
			now := storeTime(t, l)
			attend(t, l, store.Presence{InstanceID: "there"}, store.Presence{InstanceID: "gone", Seen: now.Add(-time.Hour), Next: now.Add(-time.Hour)})
		}, "workers", store.LevelWarn, "missing: gone of export, last seen "},
		"an old record that nobody trims": {func(t *testing.T, l store.Ledger, path string) {
			t.Helper()
			long(t, l, path, 2000, 40*24*time.Hour)
		}, "ledger-length", store.LevelWarn, "export has 2000 records, the oldest of "},
	} {
		t.Run(name, func(t *testing.T) {
			l, uri := newLedger(t)
			fill(t, l)
			c.plant(t, l, strings.TrimPrefix(uri, "sqlite:"))
			found, _, _ := examined(t, nil, "--store", uri, "--timeout", "5m")
			wantCheck(t, found, c.check, c.level, c.says)
			for check, f := range found {
				if check != c.check && f.Level == store.LevelFail {
					t.Errorf("%s failed, too: %+v", check, f)
				}
			}
			got := leasectl(t, nil, "doctor", "--store", uri, "--timeout", "5m")
			wantClean(t, "leasectl doctor", got.stdout+got.stderr)
			if want := map[bool]int{true: exit.Unsound}[c.level == store.LevelFail]; got.code != want || want != 0 && got.stderr != "leasectl: a check failed: "+c.check+"\n" {
				t.Errorf("leasectl doctor = %+v, want code %d", got, want)
			}
		})
	}
}

// attend puts presences into the roster.
func attend(t *testing.T, l store.Ledger, presences ...store.Presence) {
	t.Helper()
	now := storeTime(t, l)
	for i := range presences {
		p := &presences[i]
		p.WorkerType, p.ID, p.Phase, p.Schedule = "export", string(rune('a'+i)), store.PhaseCandidate, "every 5m"
		p.Since = now.Add(-2 * time.Hour)
		if p.Seen.IsZero() {
			p.Seen, p.Next = now, now.Add(time.Minute)
		}
	}
	must(t, l.(store.Roster).Attend(t.Context(), presences))
}

// alter changes a SQLite ledger as another program does.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// long makes a ledger of so many records, which begin so long ago: copies of the first, but for their times.
func long(t *testing.T, l store.Ledger, path string, count int, ago time.Duration) {
	t.Helper()
	step := ago.Milliseconds() / int64(count)
	first := storeTime(t, l).UnixMilli() - int64(count)*step
	alter(t, path, `DELETE FROM WorkerLeases WHERE seq > 1`)
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO WorkerLeases (workerType, seq, kind, instanceId, "group", claim, priority, slotStart, slotEnd, windowStart, windowEnd, token, schedule, fixedAt, readAt)
		SELECT workerType, i, kind, instanceId, "group", claim || i, priority, ?2 + ?3 * i, ?2 + ?3 * (i + 1), ?2 + ?3 * i, ?2 + ?3 * (i + 1), ?2 + ?3 * i, schedule, ?2 + ?3 * i - 10, ?2 + ?3 * i - 9
		FROM n, WorkerLeases WHERE seq = 1`, count, first, step)
	must(t, err)
	alter(t, path, `UPDATE WorkerLeases SET fixedAt = (SELECT fixedAt FROM WorkerLeases WHERE seq = 2) WHERE seq = 1`)
}

// A unique index, for which workers refuse the collection, hides neither the clock nor what else can be found out.
func TestDoctorOfARefusedCollectionDoesTheOtherChecks(t *testing.T) {
	l, uri := mongoLedger(t)
	fill(t, l)
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path, u.RawQuery = "/", ""
	client, err := mongodriver.Connect(options.Client().ApplyURI(u.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	err = client.Database(name).RunCommand(t.Context(), bson.D{{Key: "createIndexes", Value: "leases"}, {Key: "indexes", Value: bson.A{
		bson.D{{Key: "key", Value: bson.D{{Key: "claim", Value: 1}}}, {Key: "name", Value: "once"}, {Key: "unique", Value: true}},
	}}}).Err()
	if err != nil {
		t.Fatal(err)
	}
	found, _, _ := examined(t, nil, "--store", uri)
	wantCheck(t, found, store.CheckConstraints, store.LevelFail, `has the unique index "once", which would keep records out → drop it`)
	wantCheck(t, found, "clock", store.LevelOK, "")
	wantCheck(t, found, store.CheckAppend, store.LevelOK, "")
	wantCheck(t, found, "head", store.LevelSkip, "workers don't use this store: see what failed")
}

// The peer's clock is 90 s behind that of this machine.
func TestDoctorFindsAStoreWhoseClockIsWrong(t *testing.T) {
	peer := cosmospeer.Start(t, cosmospeer.Options{ClockOffset: -90 * time.Second})
	l, uri := cosmosLedger(t, peer)
	fill(t, l)
	found, r, got := examined(t, []string{storeuri.Variable + "=" + uri, cosmos.KeyVariable + "=" + cosmospeer.Key()})
	wantCheck(t, found, "clock", store.LevelWarn, "this machine's time of day is 1m")
	wantCheck(t, found, "clock", store.LevelWarn, " ahead of store time, as known to ±")
	if r.Units == nil || r.Units.Total < 5 {
		t.Errorf("requestUnits = %+v, want what it cost", r.Units)
	}
	if strings.Contains(got.stdout+got.stderr, cosmospeer.Key()) {
		t.Error("leasectl doctor shows the key")
	}
}

func TestDoctorEndsInTimeWhateverHangs(t *testing.T) {
	suites.RealTime(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for _, uri := range []string{"mongodb://user:c4n4ry@" + silent.Addr().String() + "/jobs", "cosmos://" + silent.Addr().String() + "/db/c?insecureHTTP=true"} {
		const timeout = 800 * time.Millisecond
		began := time.Now()
		found, _, got := examined(t, []string{storeuri.Variable + "=" + uri, cosmos.KeyVariable + "=" + cosmospeer.Key()}, "--timeout", timeout.String())
		wantCheck(t, found, store.CheckConnection, store.LevelFail, "no answer in time")
		wantCheck(t, found, "head", store.LevelSkip, "see connection")
		if took := time.Since(began); took > timeout+10*time.Second {
			t.Errorf("leasectl doctor of a store that hangs took %v, want %v", took, timeout)
		}
		if strings.Contains(got.stdout+got.stderr, "c4n4ry") {
			t.Errorf("leasectl doctor shows the password: %+v", got)
		}
	}
}

func TestDoctorOfWhatCantBeOpenedSaysWhy(t *testing.T) {
	suites.RealTime(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("notes.txt", []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for uri, c := range map[string]struct{ check, says string }{
		"sqlite:x.db":               {store.CheckLedger, "the file is missing or empty → leasectl init --store sqlite:x.db"},
		"sqlite:notes.txt":          {store.CheckLedger, "not a SQLite database → choose another file"},
		"sqlite:none/x.db":          {store.CheckConnection, "no such file or directory → create the directory " + filepath.Join(cwd(t), "none") + " first"},
		"mongodb+srv://a.invalid/x": {store.CheckConnection, "a.invalid"},
		"mongodb://127.0.0.1:1/x":   {store.CheckConnection, "connection refused → check that the server runs"},
	} {
		found, r, _ := examined(t, nil, "--store", uri, "--timeout", "3s")
		wantCheck(t, found, c.check, store.LevelFail, c.says)
		if r.StoreTime != "" || found["head"].Level != store.LevelSkip {
			t.Errorf("leasectl doctor of %s = %+v, want the rest skipped", uri, r)
		}
	}
	for _, uri := range []string{"bad:x", "mongodb://h:bad/x", "cosmos://a/b"} {
		if got := leasectl(t, nil, "doctor", "--store", uri, "--timeout", "1s"); uri != "cosmos://a/b" && got.code != exit.Usage {
			t.Errorf("leasectl doctor of %s = %+v, want code %d", uri, got, exit.Usage)
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 1 {
		t.Errorf("after doctor there are %v, %v, want that no file was made", files, err)
	}
}

func cwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	return dir
}
