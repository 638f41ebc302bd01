package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
)

var must = documenttest.Must

func within(t *testing.T) context.Context {
	t.Helper()
	return documenttest.Within(t, time.Minute)
}

// form is that of the URIs of a store that is made up.
var form = Form{
	URIForm: storekit.URIForm{Schemes: []string{"fake"}, Port: "1"}, Store: "fake", Schema: "own", MostSchema: 9, MostTable: 20,
	AppName: "appName", Timeout: "connectTimeout", Separators: ",:", Variable: "FAKE_PASSWORD", Unknown: "is unknown: use table",
}

// facts are what its server says.
type facts struct {
	Common

	broken, doubtful bool
	others           bool
}

// server is its server.
type server struct {
	facts *facts
	err   error
	hosts []storekit.Host
	lacks string
}

// errDown is why a connection can't be made, errOdd an answer that no operation can use, and errAway the answer about a table that
// the user may not know of.
var (
	errDown = storekit.ConnectError{Tried: []error{errors.New("nobody is there")}}
	errOdd  = errors.New("a standby answered")
	errAway = errors.New("no right on the table")
)

// soundFacts are those of a server that nothing is wrong with.
func soundFacts() *facts {
	table := func() *Relation {
		return &Relation{
			Columns: []Column{{Name: "worker_type", Type: "bytes", Required: true}, {Name: "seq", Type: "int", Required: true}, {Name: "document", Type: "text"}},
			Indexes: []Index{{Name: "pk", Key: true}},
		}
	}
	return &facts{Common: Common{User: "worker", Server: "db1 since 2026", Ledger: table(), Roster: table()}}
}

// opened is a ledger on the server.
func opened(t *testing.T, s *server, a Address) (*Ledger[*facts], *Core[*facts]) {
	t.Helper()
	c, err := Open[*facts](&form, &a, Options{})
	must(t, "Open()", err)
	c.MakePool(nil, func(context.Context) (driver.Conn, error) {
		if s.lacks != "" {
			return nil, errAway
		}
		return nil, errDown
	}, nil)
	is := func(kind string) func(c Column) bool { return func(c Column) bool { return c.Type == kind } }
	l := c.Start(Parts[*facts]{
		Meaning: func(err error) storekit.Meaning {
			return storekit.Meaning{Is: map[bool]error{true: store.ErrDenied}[errors.Is(err, errAway)]}
		},
		Look:     func(context.Context) (*facts, error) { f := *s.facts; return &f, s.err },
		AskHosts: func(context.Context, time.Duration) []storekit.Host { return s.hosts },
		Unusable: func(err error) (storekit.Flaw, bool) {
			return storekit.Flaw{Check: CheckServer, What: "it is a standby", Remedy: "name the primary"}, errors.Is(err, errOdd)
		},
		NameIt:  "name the primary",
		Probe:   s.lacks,
		Several: func(f *facts) bool { return f.others },
		Unasked: func(*facts) string { return "" },
		Checks: []Check[*facts]{
			{Name: CheckServer, Refuses: true, Flaws: func(f *facts) []storekit.Flaw {
				flaws := Flaws{Check: CheckServer, Of: "the server "}
				if f.broken {
					flaws.Add("mend it", "is %s", "broken")
				}
				return flaws.All
			}, Sound: Says[*facts]("fine")},
			c.CheckTLS(func() (string, string) { return "not encrypted", "encrypt it" }),
			{Name: "durability", Flaws: func(f *facts) []storekit.Flaw {
				flaws := Flaws{Check: "durability"}
				if f.doubtful {
					flaws.Add("sync it", "nothing is synced")
				}
				return flaws.All
			}, Aside: func(f *facts) []storekit.Flaw {
				flaws := Flaws{Check: "durability"}
				if f.doubtful {
					flaws.Add("think", "and nothing ever was")
				}
				return flaws.All
			}, Sound: Says[*facts]("all is synced")},
		},
		Columns: []Column{
			{Name: "worker_type", Type: "bytes", Why: ": others may take two names for one", Fits: is("bytes")},
			{Name: "seq", Type: "int", Fits: is("int")},
			{Name: "document", Type: "text", Fits: is("text")},
		},
		Table: func(*facts, *Flaws) {}, Kept: "a table",
		Lacks: func(_ context.Context, _ *facts, _ string, rights ...string) (string, error) {
			for _, right := range rights {
				if right == s.lacks {
					return right + " ON it", nil
				}
			}
			return "", nil
		},
		Durability: func(*facts) store.Durability { return store.Durability{Crash: "All.", Power: "All.", Failover: "All."} },
		Untested:   " (Untested.)",
		Script:     func() string { return "CREATE it" },
	})
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l, c
}
