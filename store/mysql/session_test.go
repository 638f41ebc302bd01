package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestManyThatInitialiseAtOnceAllSucceed(t *testing.T) {
	t.Parallel()
	uri := uriOf(t, mysqlpeer.Database(t))
	documenttest.InitialiseAtOnce(t, func() store.Ledger { return opened(t, Options{URI: uri, MaxConns: 1}) })
}

// What init_connect and the server's settings do to the sessions of plain users.
func TestSettingsOfTheServerDontMatter(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{Flags: []string{
		"--sysdate-is-now", "--default-time-zone=+13:00", "--sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT", "--transaction-isolation=READ-UNCOMMITTED",
		"--character-set-server=latin1", "--collation-server=latin1_swedish_ci", "--skip-character-set-client-handshake", "--max-allowed-packet=1M",
		`--init-connect=SET sql_select_limit = 1, autocommit = 0, time_zone = '-11:00', lc_messages = 'fr_FR'`, "--log-bin", "--binlog-format=STATEMENT", "--query-cache-type=1", "--query-cache-size=1M",
	}})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs", "SET GLOBAL lc_messages = 'de_DE'")
	dsn := s.DSN() + "jobs"
	uri := uriOf(t, mysqlpeer.Role(t, dsn, "ALL ON jobs.*"))
	l := initialised(t, Options{URI: uri})
	other := opened(t, Options{URI: uri})
	began := time.Now()
	stamp, err := l.Now(within(t))
	if err != nil || stamp.Time.Before(began.Truncate(time.Microsecond)) || stamp.Time.After(time.Now()) {
		t.Errorf("Now() = %+v, %v, want this machine's time", stamp, err)
	}
	for seq := range int64(3) {
		r := storetest.Grant("job", seq+1)
		r.Metadata = `\'";` + "\\\\ 🦫 é\n%_?"
		for i, l := range []*Ledger{l, other} {
			err := l.Append(within(t), r)
			if want := map[int]error{1: store.ErrConflict}[i]; !errors.Is(err, want) {
				t.Errorf("Append() of handle %d = %v, want %v", i, err, want)
			}
			if got, err := l.Get(within(t), "job", seq+1); err != nil || got.Metadata != r.Metadata {
				t.Errorf("Get() = %+v, %v, want the metadata %q", got, err, r.Metadata)
			}
		}
	}
	records, _, err := other.Tail(within(t), "job", 3)
	if err != nil || len(records) != 3 {
		t.Errorf("Tail() = %d records, %v, want all three", len(records), err)
	}
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckDurability, store.LevelWarn, "sync_binlog is 0: a loss of power loses the newest records")
	documenttest.FindsNoMore(t, found, CheckDurability)
	if n, err := l.Trim(within(t), "job", 3); n != 2 || err != nil {
		t.Errorf("Trim() = %d, %v, want 2", n, err)
	}
	// The largest record fits.
	big := storetest.Grant("big", 1)
	big.Metadata = strings.Repeat(`\`, store.MaxMetadata)
	must(t, "Append() of a large record", l.Append(within(t), big))
	if got, err := other.Get(within(t), "big", 1); err != nil || got.Metadata != big.Metadata {
		t.Errorf("Get() of a large record = %d bytes, %v, want %d", len(got.Metadata), err, len(big.Metadata))
	}
	// A foreign document that is larger than all statements.
	mysqlpeer.Exec(t, dsn, `SET GLOBAL max_allowed_packet = 16777216`)
	mysqlpeer.Exec(t, dsn, `SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ`, `INSERT INTO worker_leases VALUES ('huge', 1, REPEAT('x', 8388609)), ('huge', 2, REPEAT('x', 8000000))`)
	mysqlpeer.Exec(t, dsn, `SET GLOBAL max_allowed_packet = 1048576`)
	l = opened(t, Options{URI: uri})
	for _, says := range []string{"far larger than any", "JSON"} {
		seq := map[string]int64{"JSON": 2}[says]
		if got, err := l.Get(within(t), "huge", max(seq, 1)); err != nil || !strings.Contains(got.Defect, says) {
			t.Errorf("Get() of a huge document = %+v, %v, want a Defect that says %q", got, err, says)
		}
	}

	// A clock that stands still.
	execute(t, dsn, `SET GLOBAL init_connect = 'SET timestamp = 1000000000'`)
	frozen := opened(t, Options{URI: uri})
	wantOutcome(t, "Append() by a clock that stands still", frozen.Append(within(t), storetest.Grant("job", 9)), outcome{store.ErrRefused, true}, "has a clock that stands still")
}

func TestTheStatementsRunOnTheServerOfTheirSession(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	dsn := s.DSN() + "jobs"
	l := initialised(t, Options{URI: uriOf(t, dsn), MaxConns: 1})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	for what, c := range map[string]struct{ spoil, mend string }{
		"a session of another server":   {`SET ` + sessionServer + ` = 'other:3306 #1'`, `SELECT 1`},
		"a session that isn't set up":   {`SET ` + sessionServer + ` = NULL`, `SELECT 1`},
		"a server that takes no writes": {`SET GLOBAL read_only = 1`, `SET GLOBAL read_only = 0`},
	} {
		d := l.dialect()
		for name, s := range map[string]struct {
			text string
			args []any
		}{
			"Get":          {d.Get.Text, []any{"job", 1}},
			"Get of none":  {d.Get.Text, []any{"job", 7}},
			"Tail":         {d.Tail.Text, []any{"job", 1, "job"}},
			"Tail of none": {d.Tail.Text, []any{"none", 1, "none"}},
			"Page":         {d.Page.Text, []any{"job", 0, 9}},
			"WorkerTypes":  {d.WorkerTypes.Text, nil},
			"Now":          {d.Now.Text, nil},
			"Presences":    {d.Presences.Text, []any{"job", "job"}},
		} {
			c0, err := l.db.Conn(within(t))
			must(t, "Conn()", err)
			_, err = c0.ExecContext(within(t), c.spoil)
			must(t, c.spoil, err)
			rows := 0
			err = sqldb.Each(within(t), c0, func(*sql.Rows) error { rows++; return nil }, s.text, s.args...)
			if m := l.meaning(err); err == nil || m.Text != errAstray.Why || m.Is != nil {
				t.Errorf("%s by %s = %d rows, %v (%+v), want an error that says so", name, what, rows, err, m)
			}
			// The connection isn't used again.
			execute(t, dsn, c.mend)
			must(t, "Close()", c0.Close())
			if _, err := l.Get(within(t), "job", 1); err != nil {
				t.Errorf("Get() after %s = %v, want a new connection", what, err)
			}
		}
	}
}

// Also for a user who may write in spite of read_only.
func TestAnAppendElsewhereStoresNothing(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	dsn := s.DSN() + "jobs"
	l := initialised(t, Options{URI: uriOf(t, dsn), MaxConns: 1})
	for _, spoil := range []string{`SET ` + sessionServer + ` = 'other:3306 #1'`, `SET GLOBAL read_only = 1`} {
		_, err := l.db.ExecContext(within(t), spoil)
		must(t, spoil, err)
		wantOutcome(t, "Append() after "+spoil, l.Append(within(t), storetest.Grant("job", 1)), outcome{nil, true}, errAstray.Why)
		execute(t, dsn, `SET GLOBAL read_only = 0`)
		if _, err := l.Get(within(t), "job", 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get() after %s = %v, want ErrNotFound", spoil, err)
		}
	}
}

func TestAHandleForPeopleWritesNothing(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	initialised(t, Options{URI: uriOf(t, dsn)})
	l := opened(t, Options{URI: uriOf(t, dsn), ReadOnly: true})
	ctx := within(t)
	for what, err := range map[string]error{
		"Init": l.Init(ctx), "Append": l.Append(ctx, storetest.Grant("job", 1)), "Trim": documenttest.ErrorOf(l.Trim(ctx, "job", 1)),
		"Attend": l.Attend(ctx, nil), "Leave": l.Leave(ctx, "job", nil), "CheckRights": l.CheckRights(ctx),
	} {
		wantOutcome(t, what, err, outcome{store.ErrDenied, true}, "opened for reading alone")
	}
	if _, _, err := l.Tail(ctx, "job", 1); err != nil {
		t.Errorf("Tail() = %v, want nil", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Now(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Now() of a context that has ended = %v, want Canceled", err)
	}
	if text := fmt.Sprint(l); strings.Contains(text, "root") {
		t.Errorf("String() = %q, want no user", text)
	}
}

// Functions of a database don't stand in for those of the server.
func TestStoredFunctionsWithTheNamesOfBuiltInOnesChangeNothing(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	for name, takes := range map[string]string{
		"concat": "a TEXT", "json_valid": "a TEXT", "json_extract": "a TEXT, b TEXT", "json_unquote": "a TEXT", "octet_length": "a TEXT", "sysdate": "a INT",
		"utc_timestamp": "a INT", "timestampdiff": "a INT, b TEXT, c TEXT", "now": "a INT", "connection_id": "", "least": "a INT, b INT", "max": "a INT", "if": "a INT, b INT, c INT",
	} {
		execute(t, dsn, fmt.Sprintf("CREATE FUNCTION `%s` (%s) RETURNS INT DETERMINISTIC RETURN 7", name, takes))
	}
	l := initialised(t, Options{URI: uriOf(t, dsn)})
	before := time.Now()
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	must(t, "AppendAfter()", l.AppendAfter(within(t), storetest.Grant("job", 2), storetest.Grant("job", 1)))
	other := storetest.Grant("job", 2)
	other.Claim = "another"
	documenttest.Sentinel(t, "AppendAfter() another", l.AppendAfter(within(t), storetest.Grant("job", 3), other), store.ErrWentBack)
	got, stamp, err := l.Tail(within(t), "job", 5)
	if err != nil || len(got) != 2 || stamp.Time.Before(before.Add(-time.Second)) || stamp.Time.After(time.Now().Add(time.Second)) {
		t.Errorf("Tail() = %+v at %v, %v, want both records at about %v", got, stamp.Time, err, before)
	}
}
