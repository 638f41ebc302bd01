package leasectltest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/app"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// The store of somebody else: one that the module doesn't know.
func init() {
	store.Register("shelf", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			path, ok := strings.CutPrefix(uri, "shelf:/")
			switch {
			case !ok || strings.Contains(path, "?"):
				return nil, errors.New("shelf: uri: must be shelf: and an absolute path")
			case o.Getenv("SHELF_KEY") == "":
				return nil, errors.New("shelf: set SHELF_KEY")
			}
			l, err := sqlite.Open(ctx, sqlite.Options{Path: "/" + path, ReadOnly: o.ReadOnly})
			if err != nil {
				return nil, err
			}
			return &shelf{l, o.Getenv("SHELF_KEY")}, nil
		},
		Redact:  func(uri string) string { uri, _, _ = strings.Cut(uri, "?"); return uri },
		Form:    "shelf:/PATH",
		Secrets: []store.Secret{{Variable: "SHELF_KEY"}, {Variable: "SHELF_REGION", Shared: true}},
		Checks:  []store.Check{{Name: "shelf-life", Asks: "is the shelf there?"}},
	})
}

// shelf is a ledger that is careless with its key.
type shelf struct {
	*sqlite.Ledger
	key string
}

func (s *shelf) Describe() store.Description {
	d := s.Ledger.Describe()
	d.Examine = s.examine
	return d
}

func (s *shelf) examine(ctx context.Context) ([]store.Finding, error) {
	found, err := s.Ledger.Examine(ctx)
	return append(found,
		store.Finding{Check: "shelf-life", Level: store.LevelOK, Text: "the shelf of " + s.key},
		store.Finding{Check: "shelf-paint", Level: store.LevelOK, Text: "white"},
	), err
}

func TestMain(m *testing.M) { Main(m, app.Main) }

func TestTheStoreOfSomebodyElseWorksInALeasectlOfTheirs(t *testing.T) {
	suites.Prove(t, "it runs leasectl as processes")
	const key = "c4naryOfTheShelf77"
	Run(t, Harness{
		Fresh: func(t *testing.T) (string, []string) {
			t.Helper()
			return "shelf:" + filepath.Join(t.TempDir(), "leases.db"), []string{"SHELF_KEY=" + key, "SHELF_REGION=north"}
		},
		Form: "shelf:/PATH, with SHELF_KEY", Every: 2 * time.Second, Failover: 500 * time.Millisecond,
		Secrets: []string{key}, Withheld: []string{"SHELF_KEY"},
		Bad:    map[string]string{"shelf:x": "try: shelf:/PATH", "shelf:/x?key=" + key: "must be shelf:", "shelf:/x": "SHELF_KEY"},
		Checks: []string{"shelf-life"},
	})
	t.Run("a variable of others", func(t *testing.T) {
		env := []string{"SHELF_KEY=" + key, "SHELF_REGION=north", "LEASECTL_STORE=shelf:" + filepath.Join(t.TempDir(), "leases.db")}
		if got := Leasectl(t, env, "run", "--worker-type", "t", "--every", "24h", "--once", "--", "env"); got.Code != 0 || !strings.Contains(got.Stdout, "SHELF_REGION=north") {
			t.Errorf("leasectl run = %+v, want a command that gets what its tools need", got)
		}
		if got := Leasectl(t, env, "doctor"); strings.Index(got.Stdout, " shelf-paint ") < strings.Index(got.Stdout, " shelf-life ") || strings.Index(got.Stdout, " shelf-paint ") > strings.Index(got.Stdout, " round-trips ") {
			t.Errorf("leasectl doctor = %+v, want a check that the store didn't announce after those that are known", got)
		}
	})
}

// A test binary that a debugger or a script starts without arguments would else show the help of leasectl, and pass.
func TestABinaryWithoutArgumentsRunsItsTests(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		guard bool
	}{
		"by its path": {os.Args[:1], false},
		"with flags":  {[]string{"lease guard", "-test.v"}, false},
		"the guard":   {[]string{"lease guard"}, true},
	} {
		if got := isGuard(c.args); got != c.guard {
			t.Errorf("isGuard() of a binary %s = %v, want %v", name, got, c.guard)
		}
	}
}
