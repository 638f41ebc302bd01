package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
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
	dsn := mysqlpeer.Database(t)
	for name, c := range map[string]struct {
		// plant is executed after the handle is in use; T stands for the table.
		plant []string
		want  outcome
		says  string
	}{
		"the table is gone":           {[]string{`DROP TABLE T`}, outcome{store.ErrMissing, true}, "1146"},
		"a column is gone":            {[]string{`ALTER TABLE T DROP COLUMN document`}, outcome{store.ErrRefused, true}, "1054"},
		"a column is too small":       {[]string{`DELETE FROM T`, `ALTER TABLE T MODIFY worker_type VARBINARY(2)`}, outcome{store.ErrRefused, true}, "1406"},
		"a column takes no such":      {[]string{`ALTER TABLE T ADD COLUMN more INT, MODIFY document TEXT CHARACTER SET latin1`, `CREATE TRIGGER T_bad BEFORE INSERT ON T FOR EACH ROW SET NEW.more = 'x'`}, outcome{store.ErrRefused, true}, "1366"},
		"a column is required":        {[]string{`ALTER TABLE T ADD COLUMN owner INT NOT NULL`}, outcome{store.ErrRefused, true}, "1364"},
		"a column is made null":       {[]string{`CREATE TRIGGER T_n BEFORE INSERT ON T FOR EACH ROW SET NEW.document = NULL`}, outcome{store.ErrRefused, true}, "1048"},
		"a check":                     {[]string{`ALTER TABLE T ADD CONSTRAINT few CHECK (seq < 2)`}, outcome{store.ErrRefused, true}, "4025"},
		"a unique index":              {[]string{`CREATE UNIQUE INDEX one ON T (worker_type)`}, outcome{store.ErrRefused, true}, "besides its key"},
		"a unique index of documents": {[]string{`ALTER TABLE T ADD COLUMN length INT AS (seq DIV 10) UNIQUE`}, outcome{store.ErrRefused, true}, "for key 'length'"},
		"a foreign key":               {[]string{`CREATE TABLE T_types (name VARBINARY(255) PRIMARY KEY) ENGINE=InnoDB`, `INSERT INTO T_types SELECT DISTINCT worker_type FROM T`, `ALTER TABLE T ADD CONSTRAINT T_typed FOREIGN KEY (worker_type) REFERENCES T_types (name)`, `SET STATEMENT foreign_key_checks=0 FOR DELETE FROM T_types`}, outcome{store.ErrRefused, true}, "1452"},
		"a trigger that refuses":      {[]string{`CREATE TRIGGER T_s BEFORE INSERT ON T FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not now'`}, outcome{store.ErrRefused, true}, "not now"},
		"a computed column":           {[]string{`ALTER TABLE T DROP COLUMN document, ADD COLUMN document LONGTEXT AS ('') VIRTUAL`}, outcome{store.ErrRefused, true}, "1906"},
		"a trigger's own key":         {[]string{`CREATE TABLE T_log (a INT PRIMARY KEY)`, `INSERT INTO T_log VALUES (1)`, `CREATE TRIGGER T_l AFTER INSERT ON T FOR EACH ROW INSERT INTO T_log VALUES (1)`}, outcome{nil, false}, "but there is no record"},
		"a trigger that moves it":     {[]string{`CREATE TRIGGER T_m BEFORE INSERT ON T FOR EACH ROW SET NEW.seq = NEW.seq + 1`}, outcome{store.ErrRefused, false}, "T_m"},
		"a trigger that rewrites it":  {[]string{`CREATE TRIGGER T_r BEFORE INSERT ON T FOR EACH ROW SET NEW.document = UPPER(NEW.document)`}, outcome{store.ErrRefused, false}, "T_r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable()
			l := initialised(t, Options{URI: uriOf(t, dsn), Table: table, MaxConns: 1})
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
			for _, text := range c.plant {
				execute(t, dsn, documenttest.Named(table, text))
			}
			wantOutcome(t, "Append()", l.Append(within(t), storetest.Grant("job", 2)), c.want, documenttest.Named(table, c.says))
		})
	}
}

func TestAStatementThatTheServerEndsWasNotStoredUnlessNobodyKnows(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	for name, c := range map[string]struct {
		session string
		// end is executed while an append waits for a rival's, P being its session. commit says what becomes of that.
		end    string
		commit bool
		want   outcome
		says   string
	}{
		"the rival wins":               {commit: true, want: outcome{store.ErrConflict, false}},
		"a time-out of locks":          {session: `SET SESSION innodb_lock_wait_timeout = 1`, want: outcome{nil, true}, says: "1205"},
		"a time-out":                   {session: `SET SESSION max_statement_time = 0.3`, want: outcome{nil, false}, says: "1969"},
		"somebody cancels it":          {end: `KILL QUERY P`, want: outcome{nil, false}, says: "1317"},
		"somebody ends the connection": {end: `KILL P`, want: outcome{nil, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable()
			l := initialised(t, Options{URI: uriOf(t, dsn), Table: table, MaxConns: 1})
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
			if c.session != "" {
				_, err := l.db.ExecContext(within(t), c.session)
				must(t, c.session, err)
			}
			var session int
			must(t, "CONNECTION_ID()", l.db.QueryRowContext(within(t), `SELECT CONNECTION_ID()`).Scan(&session))
			rival, err := past(t, dsn).BeginTx(within(t), nil)
			must(t, "BeginTx()", err)
			defer func() { _ = rival.Rollback() }()
			_, err = rival.ExecContext(within(t), fmt.Sprintf(`INSERT INTO %s SELECT worker_type, 2, document FROM %s`, table, table))
			must(t, "the rival's insert", err)
			done := make(chan error, 1)
			ctx := within(t)
			go func() { done <- l.Append(ctx, storetest.Grant("job", 2)) }()
			if c.session == "" {
				awaits(t, dsn, fmt.Sprintf(`SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d AND INFO LIKE 'INSERT INTO%%' AND TIME_MS > 200`, session), "1")
			}
			if c.end != "" {
				execute(t, dsn, strings.ReplaceAll(c.end, "P", fmt.Sprint(session)))
			}
			if c.commit {
				must(t, "the rival's Commit()", rival.Commit())
			}
			wantOutcome(t, "Append()", <-done, c.want, c.says)
		})
	}
}

func TestADeadlockHasStoredNothing(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	l := initialised(t, Options{URI: uriOf(t, dsn), MaxConns: 1})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	execute(t, dsn, `CREATE TABLE other (a INT PRIMARY KEY, b INT) ENGINE = InnoDB`)
	execute(t, dsn, `INSERT INTO other VALUES (1, 1)`)
	execute(t, dsn, `CREATE TRIGGER deadly AFTER INSERT ON worker_leases FOR EACH ROW UPDATE other SET b = 2 WHERE a = 1`)
	// It has done more, so that the append is the one that is rolled back.
	rival, err := past(t, dsn).BeginTx(within(t), nil)
	must(t, "BeginTx()", err)
	defer func() { _ = rival.Rollback() }()
	for _, text := range []string{`UPDATE other SET b = 3 WHERE a = 1`, `INSERT INTO other SELECT 9 + seq, 1 FROM seq_1_to_100`} {
		_, err = rival.ExecContext(within(t), text)
		must(t, text, err)
	}
	done := make(chan error, 1)
	ctx := within(t)
	go func() { done <- l.Append(ctx, storetest.Grant("job", 2)) }()
	awaits(t, dsn, `SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'UPDATE other SET b = 2%' AND TIME_MS > 200`, "1")
	_, err = rival.ExecContext(within(t), `DELETE FROM worker_leases WHERE worker_type = 'job' AND seq = 2`)
	must(t, "the rival's delete", err)
	wantOutcome(t, "Append()", <-done, outcome{nil, true}, "1213")
}

func TestAConnectionThatIsRefusedHasStoredNothing(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	initialised(t, Options{URI: uriOf(t, dsn)})
	role := func(change string) string {
		of := mysqlpeer.Role(t, dsn, "SELECT, INSERT ON worker_leases")
		if change != "" {
			name, _, _ := strings.Cut(of, ":")
			execute(t, dsn, `ALTER USER `+name+`@'%' `+change)
		}
		return uriOf(t, of)
	}
	busy := role("WITH MAX_USER_CONNECTIONS 1")
	holds := opened(t, Options{URI: busy})
	must(t, "Append()", holds.Append(within(t), storetest.Grant("busy", 1)))
	login, _, _ := strings.Cut(role(""), "@")
	for name, c := range map[string]struct {
		uri  string
		want outcome
		says string
	}{
		"a wrong password":       {strings.Replace(role(""), "@", "x@", 1), outcome{store.ErrDenied, true}, "1045"},
		"no such user":           {strings.Replace(role(""), "://", "://x", 1), outcome{store.ErrDenied, true}, "1045"},
		"no such database":       {strings.Replace(uriOf(t, dsn), "/t", "/nosuch", 1), outcome{store.ErrMissing, true}, "create it"},
		"another database":       {login + "@" + strings.SplitN(uriOf(t, dsn), "@", 2)[1] + "x", outcome{store.ErrDenied, true}, "1044"},
		"an account is locked":   {role("ACCOUNT LOCK"), outcome{store.ErrDenied, true}, "4151"},
		"a password has expired": {role("PASSWORD EXPIRE"), outcome{store.ErrDenied, true}, "1820"},
		"too many connections":   {busy, outcome{nil, true}, "raise max_connections in my.cnf, or the user's limit"},
		"nobody there":           {"mysql://root@127.0.0.1:1/x", outcome{nil, true}, "refused"},
		"no TLS":                 {role("") + "?tls=true", outcome{nil, true}, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			wantOutcome(t, "Append()", opened(t, Options{URI: c.uri}).Append(within(t), storetest.Grant("job", 1)), c.want, c.says)
		})
	}
}

// What no server was brought to say here.
func TestWhatOtherErrorsMean(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "mysql://worker@localhost/jobs"})
	for _, c := range []struct {
		code  uint16
		want  outcome
		sound bool
	}{
		{1047, outcome{nil, true}, false},
		{1114, outcome{nil, true}, false},
		{1153, outcome{nil, true}, false},
		{3101, outcome{nil, true}, true},
		{3819, outcome{store.ErrRefused, true}, false},
		{3105, outcome{store.ErrRefused, true}, false},
		{1665, outcome{store.ErrRefused, true}, false},
		{1143, outcome{store.ErrDenied, true}, true},
		{1021, outcome{nil, false}, false}, // disk full, perhaps that of a log
		{1026, outcome{nil, false}, false}, // error writing file
		{1053, outcome{nil, false}, false}, // shutdown
		{1105, outcome{nil, false}, false}, // unknown error
		{1180, outcome{nil, false}, false}, // error during commit
		{1317, outcome{nil, false}, false}, // interrupted
		{1927, outcome{nil, false}, false}, // connection killed
		{3024, outcome{nil, false}, false}, // max_execution_time
		{3100, outcome{nil, false}, false}, // a plugin's hook failed
		{0, outcome{nil, false}, false},
	} {
		err := error(&mysql.MySQLError{Number: c.code, Message: "it failed"})
		got := l.meaning(fmt.Errorf("exec: %w", err))
		if !errors.Is(got.Is, c.want.is) || got.NotStored != c.want.notStored || got.Sound != c.sound {
			t.Errorf("meaning(%d) = %+v, want %v, nothing stored: %v, sound: %v", c.code, got, c.want.is, c.want.notStored, c.sound)
		}
	}
	for _, err := range []error{mysql.ErrInvalidConn, io.ErrUnexpectedEOF, context.DeadlineExceeded, mysql.ErrMalformPkt, sqldb.Afterwards(&mysql.MySQLError{Number: 1045}), sqldb.Afterwards(driver.ErrBadConn)} {
		if got := l.meaning(err); got.Is != nil || got.NotStored {
			t.Errorf("meaning(%v) = %+v, want an outcome that is unknown", err, got)
		}
	}
	// Before any server that takes writes was seen, somebody has named the wrong one. Later it is a failover.
	for _, known := range []*facts{nil, {}} {
		l.core.Learn(known)
		want := map[bool]error{true: store.ErrRefused}[known == nil]
		for _, err := range []*mysql.MySQLError{
			{Number: codeOutOfRange, Message: "BIGINT UNSIGNED value is out of range in '(18446744073709551615 + if((@`slotlease_server` = …"},
			{Number: codeOption, Message: "The MySQL server is running with the --super-read-only option so it cannot execute this statement"},
			{Number: codeReadMode, Message: "Running in read-only mode"},
			{Number: codeReadTransaction, Message: "Cannot execute statement in a READ ONLY transaction"},
		} {
			if got := l.meaning(err); !errors.Is(got.Is, want) || !got.NotStored {
				t.Errorf("meaning(%v), a server seen: %v, = %+v, want %v, nothing stored", err, known != nil, got, want)
			}
		}
	}
	if got := l.meaning(&mysql.MySQLError{Number: codeOption, Message: "running with the --skip-grant-tables option"}); got.Is != nil || !got.NotStored {
		t.Errorf("meaning(another option) = %+v, want nothing stored, and no more", got)
	}
}

func TestOnlyTheOwnKeyIsAConflict(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		"Duplicate entry 'job-2' for key 'PRIMARY'":                      true, // MariaDB, and MySQL before 8.0.19
		"Duplicate entry 'job-2' for key 'worker_leases.PRIMARY'":        true,
		"Duplicate entry 'job-2' for key 'Worker_Leases.PRIMARY'":        true, // lower_case_table_names = 2
		"Duplicate entry 'job-2' for key 'worker_leases_roster.PRIMARY'": false,
		"Duplicate entry 'job-2' for key 'audit.PRIMARY'":                false,
		"Duplicate entry 'job' for key 'planted_unique'":                 false,
		"Duplicate entry 'x' for key 'PRIMARY' for key 'one'":            false,
		"Doppelter Eintrag 'job-2' für Schlüssel 'PRIMARY'":              false, // Its session isn't set up.
		"Duplicate entry '' for key 'PRIMARY_2'":                         false,
	} {
		if got := isKey(fmt.Errorf("x: %w", &mysql.MySQLError{Number: codeDuplicate, Message: message}), "worker_leases"); got != want {
			t.Errorf("isKey(%q) = %v, want %v", message, got, want)
		}
	}
	if isKey(&mysql.MySQLError{Number: 1146, Message: "for key 'PRIMARY'"}, "x") || isKey(nil, "x") {
		t.Error("isKey() of other errors = true, want false")
	}
}

// With lower_case_table_names=1, a server says names in small letters.
func TestAMissingTableIsMissingHoweverTheServerWritesIt(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "mysql://h/jobs?table=Worker_Leases"})
	for _, name := range []string{"worker_leases", "Worker_Leases", "worker_leases_roster"} {
		if m := l.meaning(&mysql.MySQLError{Number: 1146, Message: "Table 'jobs." + name + "' doesn't exist"}); !errors.Is(m.Is, store.ErrMissing) {
			t.Errorf("meaning of a missing table %s = %+v, want ErrMissing", name, m)
		}
	}
}

func TestAMistakenStatementIsNoFaultOfTheServer(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: uriOf(t, mysqlpeer.Database(t))})
	documenttest.Mistakes(t, map[string]string{
		`SELECT 1 AS table`: "1064", `SELECT no_such FROM DUAL`: "1054", `SELECT 1 FROM no_such`: "1146", `SELECT no_such(1)`: "1305", `SET @@no_such = 1`: "1193",
	}, func(_, text string) (shown, remedy string, is error) {
		_, err := l.db.ExecContext(within(t), text)
		m := l.meaning(err)
		return m.Text, m.Remedy, m.Is
	})
}
