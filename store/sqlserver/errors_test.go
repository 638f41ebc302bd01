//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// said is an error of a server.
func said(number int32, class uint8, message string) mssql.Error {
	return mssql.Error{Number: number, Class: class, Message: message, All: []mssql.Error{{Number: number, Class: class, Message: message}}}
}

// both is an error of a server with two parts.
func both(first, second mssql.Error) mssql.Error {
	second.All = []mssql.Error{first, second}
	return second
}

// duplicate is what a server says of a key that is taken.
const duplicate = "Violation of PRIMARY KEY constraint 'pk_worker_leases'. Cannot insert duplicate key in object 'dbo.worker_leases'. The duplicate key value is (0x6a6f62, 7)."

// ready is a ledger that has found its database fit.
func ready(t testing.TB) *Ledger {
	t.Helper()
	l := opened(t, Options{URI: "sqlserver://me:" + canary + "@127.0.0.1:1/jobs"})
	l.core.Learn(sound())
	return l
}

func TestWhatErrorsMean(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		is        error
		notStored bool
		text      string
	}{
		"no such table":                 {said(208, 16, "Invalid object name 'dbo.worker_leases'."), store.ErrMissing, true, ""},
		"no such database":              {storekit.ConnectError{Tried: []error{both(said(4060, 11, `Cannot open database "jobs" requested by the login. The login failed.`), said(18456, 14, "Login failed for user 'me'."))}}, store.ErrMissing, true, "there is no database"},
		"a wrong password":              {storekit.ConnectError{Tried: []error{said(18456, 14, "login error: Login failed for user 'me'.")}}, store.ErrDenied, true, ""},
		"no right to insert":            {said(229, 14, "The INSERT permission was denied on the object 'worker_leases'"), store.ErrDenied, true, ""},
		"a trigger":                     {said(334, 16, "The target table 'dbo.worker_leases' of the DML statement cannot have any enabled triggers"), store.ErrRefused, true, "has triggers"},
		"another unique index":          {said(2601, 14, "Cannot insert duplicate key row in object 'dbo.worker_leases' with unique index 'ix'. The duplicate key value is (0x6a6f62)."), store.ErrRefused, true, "a unique index besides its key"},
		"a check":                       {said(547, 16, "The INSERT statement conflicted with the CHECK constraint"), store.ErrRefused, true, ""},
		"a column without a default":    {said(515, 16, "Cannot insert the value NULL into column 'x'"), store.ErrRefused, true, ""},
		"a security policy":             {said(33504, 16, "The attempted operation failed because the target object has a block predicate"), store.ErrRefused, true, ""},
		"a deadlock":                    {said(1205, 13, "Transaction was deadlocked"), nil, true, ""},
		"a lock that is waited for":     {said(1222, 16, "Lock request time out period exceeded."), nil, true, ""},
		"a conflict of snapshots":       {said(3960, 16, "Snapshot isolation transaction aborted due to update conflict"), nil, true, ""},
		"a limit of Azure's":            {said(10928, 16, "Resource ID : 1. The request limit for the database is 30"), store.ErrThrottled, false, ""},
		"a full log":                    {said(9002, 17, "The transaction log for database 'jobs' is full"), nil, false, ""},
		"no room":                       {said(1105, 17, "Could not allocate space for object"), nil, false, ""},
		"no memory":                     {said(701, 17, "There is insufficient system memory"), nil, false, ""},
		"Azure's reconfiguration":       {said(40197, 17, "The service has encountered an error processing your request"), nil, false, ""},
		"a known error with an unknown": {both(said(9002, 17, "The transaction log is full"), said(1205, 13, "deadlocked")), nil, false, ""},
		"a known error that is fatal":   {said(1205, 20, "deadlocked"), nil, false, ""},
		"a broken stream":               {mssql.StreamError{InnerError: io.ErrUnexpectedEOF}, nil, false, ""},
		"a connection that broke":       {&net.OpError{Op: "read", Err: io.EOF}, nil, false, ""},
		"a failed send":                 {errors.New("failed to send RPC: broken pipe"), nil, false, ""},
		"the end of a context":          {context.Canceled, nil, false, ""},
		"a connection that was broken":  {driver.ErrBadConn, nil, true, ""},
		"no connection":                 {storekit.ConnectError{Tried: []error{io.EOF}}, nil, true, ""},
		"after the insert":              {sqldb.Afterwards(said(1222, 16, "Lock request time out period exceeded.")), nil, false, ""},
	} {
		m := ready(t).meaning(c.err)
		if !errors.Is(m.Is, c.is) || m.NotStored != c.notStored || !strings.Contains(m.Text, c.text) {
			t.Errorf("meaning of %s = %+v, want %v, not stored: %v, %q", name, m, c.is, c.notStored, c.text)
		}
	}
}

func TestAServerThatTakesNoWritesIsRefusedUntilOneWasSeen(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"a secondary, by its login":  storekit.ConnectError{Tried: []error{storekit.Unfit{Why: "the database takes no writes here (Updateability is READ_ONLY)"}}},
		"a secondary, by a guard":    said(51700, 16, guardText),
		"a database made read-only":  said(3906, 16, `Failed to update database "jobs" because the database is read-only.`),
		"a database that moved":      said(983, 14, "Unable to access availability database 'jobs' because the database replica is not in the PRIMARY or SECONDARY role."),
		"a read-only one by intent":  said(978, 14, "The target database ('jobs') is in an availability group and is currently accessible for connections when the application intent is set to read only."),
		"two hosts that are both so": storekit.ConnectError{Tried: []error{storekit.Unfit{Why: "a"}, fmt.Errorf("b: %w", storekit.Unfit{Why: "c"})}},
	} {
		fresh := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"})
		if m := fresh.meaning(err); !errors.Is(m.Is, store.ErrRefused) || !m.NotStored || !strings.Contains(m.Text, nameTheRightOne) {
			t.Errorf("meaning of %s at first = %+v, want a refusal", name, m)
		}
		if m := ready(t).meaning(err); m.Is != nil || !m.NotStored || m.Text == "" {
			t.Errorf("meaning of %s later = %+v, want one that passes, and nothing stored", name, m)
		}
	}
	for name, err := range map[string]error{
		"somebody else's error with that number": said(51700, 16, "audit: no"),
		"one host of two":                        storekit.ConnectError{Tried: []error{storekit.Unfit{Why: "a"}, io.EOF}},
	} {
		if m := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"}).meaning(err); errors.Is(m.Is, store.ErrRefused) {
			t.Errorf("meaning of %s = %+v, want no refusal", name, m)
		}
	}
}

// A conflict is the violation of that very key, and of nothing else.
func TestOnlyTheKeyOfTheTableIsAConflict(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		duplicate: true,
		"Violation de la contrainte PRIMARY KEY 'pk_worker_leases'. Impossible d'insérer une clé en double dans l'objet 'dbo.worker_leases'. Valeur de clé dupliquée : (0x6a6f62, 7).": true,
		strings.Replace(duplicate, "pk_worker_leases", "pk_audit", 1):                                         false,
		strings.Replace(duplicate, "dbo.worker_leases", "ops.worker_leases", 1):                               false,
		strings.Replace(duplicate, "'dbo.worker_leases'", "'dbo.worker_leases2'", 1):                          false,
		"Violation of UNIQUE KEY constraint 'uq'. Cannot insert duplicate key in object 'dbo.worker_leases'.": false,
		"": false,
	} {
		if got := ready(t).isKey(said(2627, 14, message)); got != want {
			t.Errorf("isKey(%s) = %v, want %v", message, got, want)
		}
	}
	for name, err := range map[string]error{
		"another number":         said(547, 16, duplicate),
		"an error along with it": both(said(2627, 14, duplicate), said(3609, 16, "The transaction ended in the trigger.")),
		"the same key twice":     both(said(2627, 14, duplicate), said(2627, 14, duplicate)),
		"a fatal error":          said(2627, 20, duplicate),
		"what follows an insert": sqldb.Afterwards(said(2627, 14, duplicate)),
		"no error of a server":   errors.New(duplicate),
	} {
		if ready(t).isKey(err) {
			t.Errorf("isKey() of %s = true, want false", name)
		}
	}
	fresh := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"})
	if fresh.isKey(said(2627, 14, duplicate)) {
		t.Errorf("isKey() without a known key = true, want false")
	}
}

func TestWhatBecameOfAnInsert(t *testing.T) {
	t.Parallel()
	l := ready(t)
	ctx, receipt := store.WithReceipt(t.Context())
	must(t, "settle() of a record", l.settle(ctx, insertion{stored: 1, read: 1, same: true, micros: 1_700_000_000_000_001, server: "s since 2026"}, nil))
	stamp := receipt.Stamp()
	if stamp.Time.UnixMicro() != 1_700_000_000_000_001 || stamp.MaxAge != tick || stamp.Clock != "s since 2026" {
		t.Errorf("the receipt's stamp = %+v, want that of the insert", stamp)
	}
	documenttest.Is(t, "settle() of a hidden record", l.settle(ctx, insertion{stored: 1}, nil), store.ErrRefused)
	documenttest.Is(t, "settle() of a changed record", l.settle(ctx, insertion{stored: 1, read: 1}, nil), store.ErrRefused)
	for _, got := range []insertion{{}, {read: 1, same: true}, {stored: 2, read: 1, same: true}} {
		err := l.settle(ctx, got, nil)
		if err == nil || errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrRefused) {
			t.Errorf("settle(%+v) = %v, want an error whose outcome is unknown", got, err)
		}
	}
	// What the server says after the insert is not what became of it.
	err := l.core.Runner.Failed(t.Context(), "append", "job:7", l.settle(ctx, insertion{stored: 1}, nil))
	if errors.Is(err, store.ErrNotStored) {
		t.Errorf("a hidden record = %v, want that it may be stored", err)
	}
}

func TestNoErrorOfTheServerShowsASecret(t *testing.T) {
	t.Parallel()
	l := ready(t)
	for _, err := range []error{
		said(18456, 14, "Login failed for user 'me' with "+canary), said(208, 16, canary), said(229, 14, canary), said(9002, 17, canary),
		said(334, 16, canary), said(2627, 14, canary),
		storekit.ConnectError{Tried: []error{errors.New("dial sqlserver://me:" + canary + "@127.0.0.1")}},
		mssql.StreamError{InnerError: errors.New(canary)},
		storekit.Flaw{Check: CheckServer, What: canary}.Refuse(),
	} {
		if shown := l.core.Runner.Failed(t.Context(), "append", "job:7", err); strings.Contains(shown.Error(), canary) || strings.Contains(store.Detail(shown), canary) {
			t.Errorf("an error shows a password: %v (%s)", shown, store.Detail(shown))
		}
	}
	if strings.Contains(l.String(), canary) {
		t.Errorf("String() = %s, want no password", l)
	}
}

func TestAMistakenStatementIsNoFaultOfTheServer(t *testing.T) {
	t.Parallel()
	// With the severity that each has: https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors
	documenttest.Mistakes(t, map[string]string{
		"15 Incorrect syntax near the keyword 'clustered'.": "156", "15 Incorrect syntax near ')'.": "102", "16 Invalid column name 'clustered'.": "207",
		"16 Invalid object name 'sys.no_such'.": "208", "15 'no_such' is not a recognized built-in function name.": "195", "16 The multi-part identifier \"a.b\" could not be bound.": "4104",
	}, func(number, text string) (shown, remedy string, is error) {
		class, message, _ := strings.Cut(text, " ")
		n, _ := strconv.ParseInt(number, 10, 32)
		c, _ := strconv.ParseUint(class, 10, 8)
		m := ready(t).meaning(said(int32(n), uint8(c), message))
		return m.Text, m.Remedy, m.Is
	})
}
