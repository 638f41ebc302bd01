package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// outcome is what an error of an append means: a sentinel or nil, and whether surely nothing was stored.
type outcome struct {
	is        error
	notStored bool
}

// wantOutcome demands one, and that the error names something.
func wantOutcome(t *testing.T, what string, err error, want outcome, says string) {
	t.Helper()
	documenttest.Means(t, what, err, want.is, want.notStored, says)
}

func TestWhatAServersErrorsMean(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	for name, c := range map[string]struct {
		// plant is executed after the handle is in use; T stands for the table. session is executed by the handle's
		// one connection.
		plant, session string
		want           outcome
		says           string
	}{
		"the table is gone":        {`DROP TABLE T`, "", outcome{store.ErrMissing, true}, "42P01"},
		"the key is gone":          {`ALTER TABLE T DROP CONSTRAINT T_pkey`, "", outcome{store.ErrRefused, true}, "42P10"},
		"a column is gone":         {`ALTER TABLE T DROP COLUMN document`, "", outcome{store.ErrRefused, true}, "42703"},
		"a column has other types": {`ALTER TABLE T ALTER document TYPE bytea USING ''`, "", outcome{store.ErrRefused, true}, "42804"},
		"a column is required":     {`ALTER TABLE T ADD COLUMN owner text NOT NULL DEFAULT 'x'; ALTER TABLE T ALTER owner DROP DEFAULT`, "", outcome{store.ErrRefused, true}, "column owner, which keeps records out"},
		"a check":                  {`ALTER TABLE T ADD CONSTRAINT few CHECK (seq < 2)`, "", outcome{store.ErrRefused, true}, "few, which keeps records out"},
		"a unique index":           {`CREATE UNIQUE INDEX T_one ON T (worker_type)`, "", outcome{store.ErrRefused, true}, "T_one, which keeps records out"},
		"an exclusion":             {`ALTER TABLE T ADD CONSTRAINT T_apart EXCLUDE USING btree (worker_type WITH =)`, "", outcome{store.ErrRefused, true}, "T_apart, which keeps records out"},
		"a foreign key":            {`CREATE TABLE T_types (name text COLLATE "C" PRIMARY KEY); INSERT INTO T_types VALUES ('job'); ALTER TABLE T ADD CONSTRAINT typed FOREIGN KEY (worker_type) REFERENCES T_types; ALTER TABLE T_types DISABLE TRIGGER ALL; DELETE FROM T_types; ALTER TABLE T_types ENABLE TRIGGER ALL`, "", outcome{store.ErrRefused, true}, "typed, which keeps records out"},
		"a rule":                   {`CREATE RULE nothing AS ON INSERT TO T DO INSTEAD NOTHING`, "", outcome{store.ErrRefused, true}, "0A000"},
		// The commit comes after the server's word that the statement is done.
		"an error of the commit":       {`CREATE FUNCTION T_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING MESSAGE = ''not now''| END'; CREATE CONSTRAINT TRIGGER late AFTER INSERT ON T DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION T_f()`, "", outcome{nil, true}, "not now"},
		"a session that may only read": {"", `SET default_transaction_read_only = on`, outcome{nil, true}, "the server takes no writes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable()
			l := initialised(t, Options{URI: uri, Table: table, MaxConns: 1})
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
			for text := range strings.SplitSeq(c.plant, "; ") {
				if text != "" {
					execute(t, uri, strings.ReplaceAll(documenttest.Named(table, text), "|", ";"))
				}
			}
			if c.session != "" {
				_, err := l.db.ExecContext(within(t), c.session)
				must(t, c.session, err)
			}
			err := l.Append(within(t), storetest.Grant("job", 2))
			wantOutcome(t, "Append()", err, c.want, documenttest.Named(table, c.says))
			if c.session != "" {
				// The connection isn't used again.
				must(t, "the next Append()", l.Append(within(t), storetest.Grant("job", 2)))
			}
		})
	}
}

func TestAStatementThatTheServerEndsWasNotStoredUnlessTheConnectionEnds(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	for name, c := range map[string]struct {
		session string
		// end is executed while an append waits for a rival's, P being its process. commit says what becomes of that.
		end    string
		commit bool
		want   outcome
		says   string
	}{
		"the rival wins":               {commit: true, want: outcome{store.ErrConflict, false}},
		"the rival wins, by snapshots": {session: `SET default_transaction_isolation = 'repeatable read'`, commit: true, want: outcome{nil, true}, says: "40001"},
		"a time-out":                   {session: `SET statement_timeout = '200ms'`, want: outcome{nil, true}, says: "57014"},
		"a time-out of locks":          {session: `SET lock_timeout = '200ms'`, want: outcome{nil, true}, says: "55P03"},
		"somebody cancels it":          {end: `SELECT pg_cancel_backend(P)`, want: outcome{nil, true}, says: "57014"},
		"somebody ends the connection": {end: `SELECT pg_terminate_backend(P)`, want: outcome{nil, false}, says: "57P01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable()
			l := initialised(t, Options{URI: uri, Table: table, MaxConns: 1})
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
			if c.session != "" {
				_, err := l.db.ExecContext(within(t), c.session)
				must(t, c.session, err)
			}
			var process int
			must(t, "pg_backend_pid()", l.db.QueryRowContext(within(t), `SELECT pg_backend_pid()`).Scan(&process))
			rival, err := past(t, uri).BeginTx(within(t), nil)
			must(t, "BeginTx()", err)
			defer func() { _ = rival.Rollback() }()
			_, err = rival.ExecContext(within(t), fmt.Sprintf(`INSERT INTO %s SELECT worker_type, 2, document FROM %s`, table, table))
			must(t, "the rival's insert", err)
			done := make(chan error, 1)
			ctx := within(t)
			go func() { done <- l.Append(ctx, storetest.Grant("job", 2)) }()
			if c.session == "" || c.commit {
				awaits(t, uri, fmt.Sprintf(`SELECT count(*) FROM pg_locks WHERE pid = %d AND NOT granted`, process), 1)
			}
			if c.end != "" {
				execute(t, uri, strings.ReplaceAll(c.end, "P)", fmt.Sprint(process, ")")))
			}
			if c.commit {
				must(t, "the rival's Commit()", rival.Commit())
			}
			wantOutcome(t, "Append()", <-done, c.want, c.says)
		})
	}
}

func TestAConnectionThatIsRefusedHasStoredNothing(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	initialised(t, Options{URI: uri})
	role := postgrespeer.Role(t, uri, "SELECT, INSERT ON worker_leases")
	full := postgrespeer.Role(t, uri, "SELECT, INSERT ON worker_leases")
	name, _, _ := strings.Cut(strings.TrimPrefix(full, "postgres://"), ":")
	execute(t, uri, `ALTER ROLE `+name+` CONNECTION LIMIT 0`)
	database, _, _ := strings.Cut(uri, "?")
	for name, c := range map[string]struct {
		uri  string
		want outcome
		says string
	}{
		"a wrong password":     {strings.Replace(role, "@", "x@", 1), outcome{store.ErrDenied, true}, "28P01"},
		"no such user":         {strings.Replace(role, "://", "://x", 1), outcome{store.ErrDenied, true}, "28P01"},
		"no such database":     {database + "x?sslmode=disable", outcome{store.ErrMissing, true}, "create it"},
		"too many connections": {full, outcome{nil, true}, "ALTER SYSTEM SET max_connections"},
		"nobody there":         {"postgres://postgres@127.0.0.1:1/x", outcome{nil, true}, "refused"},
		"no TLS":               {strings.Replace(role, "sslmode=disable", "sslmode=require", 1), outcome{nil, true}, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOutcome(t, "Append()", opened(t, Options{URI: c.uri}).Append(within(t), storetest.Grant("job", 1)), c.want, c.says)
		})
	}
}

// A full queue of notifications would keep releases out. That takes 8 GB of them, so that here the right is missing.
func TestAnAppendThatCanNotNotifyIsMadeWithout(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	initialised(t, Options{URI: uri})
	role := postgrespeer.Role(t, uri, "SELECT, INSERT ON worker_leases")
	execute(t, uri, `REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC`)
	l := opened(t, Options{URI: role})
	for seq := int64(1); seq <= 2; seq++ {
		r := storetest.Grant("job", seq)
		r.Kind, r.WindowStart = store.KindRelease, r.WindowEnd
		must(t, "Append() of a release", l.Append(within(t), r))
	}
}

// What no server was brought to say here.
func TestWhatOtherErrorsMean(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "postgres://worker@localhost/jobs"})
	for _, c := range []struct {
		severity, code string
		want           outcome
		sound          bool
	}{
		{"ERROR", "40P01", outcome{nil, true}, true},
		{"ERROR", "40003", outcome{nil, false}, false},
		{"ERROR", "53100", outcome{nil, true}, false},
		{"ERROR", "53200", outcome{nil, true}, false},
		{"ERROR", "54000", outcome{nil, true}, false},
		{"ERROR", "3F000", outcome{store.ErrMissing, true}, false},
		{"ERROR", "08006", outcome{nil, false}, false},
		{"ERROR", "08P01", outcome{nil, false}, false},
		{"ERROR", "58030", outcome{nil, false}, false},
		{"ERROR", "XX000", outcome{nil, false}, false},
		{"ERROR", "XX001", outcome{nil, false}, false},
		{"ERROR", "", outcome{nil, false}, false},
		{"FATAL", "57P01", outcome{nil, false}, false},
		{"FATAL", "57P02", outcome{nil, false}, false},
		{"FATAL", "57P03", outcome{nil, false}, false},
		{"FATAL", "25P03", outcome{nil, false}, false},
		{"FATAL", "23505", outcome{nil, false}, false},
		{"PANIC", "53100", outcome{nil, false}, false},
		{"FATAL", "08P01", outcome{nil, false}, false},
	} {
		err := error(&pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: c.severity, Code: c.code, Message: "it failed"})
		got := l.meaning(fmt.Errorf("exec: %w", err))
		if !errors.Is(got.Is, c.want.is) || got.NotStored != c.want.notStored || got.Sound != c.sound {
			t.Errorf("meaning(%s %s) = %+v, want %v, nothing stored: %v, sound: %v", c.severity, c.code, got, c.want.is, c.want.notStored, c.sound)
		}
	}
	for _, err := range []error{errors.New("unexpected EOF"), context.DeadlineExceeded, unreplicated{&pgconn.Notice{}}, errors.Join(unreplicated{&pgconn.Notice{}}, &pgconn.PgError{Code: "57014", Severity: "ERROR"})} {
		if got := l.meaning(err); got.Is != nil || got.NotStored {
			t.Errorf("meaning(%v) = %+v, want an outcome that is unknown", err, got)
		}
	}
	// Before any primary was seen, somebody has named the wrong server. Later it is a failover.
	guard := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: codeInvalidText, Message: `ungültig: "` + standbyText + `"`}
	for _, known := range []*facts{nil, {}} {
		l.core.Learn(known)
		want := map[bool]error{true: store.ErrRefused}[known == nil]
		for _, err := range []error{guard, &pgconn.PgError{Severity: "ERROR", Code: codeReadOnly}} {
			if got := l.meaning(err); !errors.Is(got.Is, want) || !got.NotStored {
				t.Errorf("meaning(%v), a primary seen: %v, = %+v, want %v, nothing stored", err, known != nil, got, want)
			}
		}
	}
	if !slices.IsSorted(rolledBack) {
		t.Errorf("rolledBack = %q, want them in order", rolledBack)
	}
}

// Once the record is stored, an error of what comes after doesn't say that nothing was.
func TestAnErrorAfterTheInsertLeavesItsOutcomeUnknown(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	initialised(t, Options{URI: uri})
	role := postgrespeer.Role(t, uri, "SELECT, INSERT ON worker_leases")
	name, _, _ := strings.Cut(strings.TrimPrefix(role, "postgres://"), ":")
	l := opened(t, Options{URI: role})
	l.db.SetConnMaxLifetime(time.Nanosecond)
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	execute(t, uri, `CREATE FUNCTION shut() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN ALTER ROLE `+name+` CONNECTION LIMIT 0; RETURN NULL; END'`)
	execute(t, uri, `CREATE TRIGGER shut AFTER INSERT ON worker_leases FOR EACH ROW EXECUTE FUNCTION shut()`)
	err := l.Append(within(t), storetest.Grant("job", 2))
	unknown(t, "Append() after which no connection can be made", err)
	documenttest.Says(t, "Append() after which no connection can be made", err, nil, "the insert was made (1 stored)", "53300")
	if n := postgrespeer.Exec(t, uri, `SELECT count(*) FROM worker_leases`); n != "2" {
		t.Errorf("there are %s records, want 2", n)
	}
}

func TestAMistakenStatementIsNoFaultOfTheServer(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: postgrespeer.Shared(t)})
	documenttest.Mistakes(t, map[string]string{
		`SELECT 1 AS a FROM WHERE`: "42601", `SELECT no_such`: "42703", `SELECT 1 FROM no_such`: "42P01", `SELECT no_such(1)`: "42883",
	}, func(_, text string) (shown, remedy string, is error) {
		_, err := l.db.ExecContext(within(t), text)
		m := l.meaning(err)
		return m.Text, m.Remedy, m.Is
	})
}
