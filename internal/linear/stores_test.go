package linear_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/restarts"
	"github.com/slotlease/slotlease/store"
	_ "github.com/slotlease/slotlease/store/azblob"
	"github.com/slotlease/slotlease/store/cosmos"
	_ "github.com/slotlease/slotlease/store/mysql"
	_ "github.com/slotlease/slotlease/store/postgres"
	_ "github.com/slotlease/slotlease/store/redis"
	_ "github.com/slotlease/slotlease/store/s3"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

// servers start one of a store each, for one test, with the settings by which what it
// acknowledges is on disk. Without a binary log MariaDB fails: InnoDB shows a commit to readers before its log is on the
// disk, see store/mysql.
var servers = []struct {
	row   string
	start func(t *testing.T) (uri string, s restarts.Server)
	// keys are of the environment.
	keys map[string]string
	// inOrder is set where a tail is made of lists that are no snapshots: while somebody appends all the time, it is what the
	// ledger had at one moment only if that is done in order.
	inOrder bool
}{
	{row: rowPostgres, start: func(t *testing.T) (string, restarts.Server) {
		s := postgrespeer.Start(t, postgrespeer.Options{})
		return s.URI(), s
	}},
	{row: rowMySQL, start: func(t *testing.T) (string, restarts.Server) {
		s := mysqlpeer.Start(t, mysqlpeer.Options{Flags: []string{"--log-bin", "--server-id=1", "--sync-binlog=1"}})
		mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
		return "mysql://root@" + s.Addr() + "/jobs", s
	}},
	{row: rowRedis, start: func(t *testing.T) (string, restarts.Server) {
		s := redispeer.Start(t, redispeer.Options{})
		return s.URI(), s
	}},
	{row: rowS3, inOrder: true, keys: map[string]string{"AWS_ACCESS_KEY_ID": s3peer.ID, "AWS_SECRET_ACCESS_KEY": s3peer.Secret}, start: func(t *testing.T) (string, restarts.Server) {
		s := s3peer.Start(t)
		return "s3://linear/jobs?pathStyle=true&endpoint=" + url.QueryEscape(s.Endpoint()), s
	}},
	{row: rowCosmos, keys: map[string]string{cosmos.KeyVariable: cosmospeer.Key()}, start: func(t *testing.T) (string, restarts.Server) {
		s := cosmospeer.Start(t, cosmospeer.Options{})
		return "cosmos://" + s.Addr() + "/linear/jobs?insecureHTTP=true", s
	}},
	{row: rowAzblob, inOrder: true, keys: map[string]string{"AZURE_STORAGE_KEY": azuritepeer.Key}, start: func(t *testing.T) (string, restarts.Server) {
		s := azuritepeer.Start(t)
		return "azblob://" + azuritepeer.Account + "/linear/jobs?endpoint=" + url.QueryEscape(s.Endpoint()), s
	}},
}

func TestStoresAreLinearizableWhileTheirServersAreKilled(t *testing.T) {
	t.Parallel()
	for _, c := range servers {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			uri, server := c.start(t)
			var ledgers []store.Ledger
			for range clients {
				l, err := store.Open(t.Context(), uri, store.OpenOptions{Getenv: func(name string) string { return c.keys[name] }})
				must(t, err)
				defer func() { _ = l.Close(t.Context()) }()
				ledgers = append(ledgers, l)
			}
			must(t, ledgers[0].Init(t.Context()))
			first, least := 0, 3
			if shortened() {
				first, least = 2, 1
			}
			var sum linear.Result
			kills, after := 0, 0
			for i := first; sum.Searched < share(t, 1)/16 || i < first+least; i++ {
				p := restarts.Plan(i)
				p.InOrder = c.inOrder
				h, n := restarts.Round(t.Context(), ledgers, i, p, server)
				sum.Add(check(t, h))
				if t.Failed() {
					t.Fatalf("round %d is not linearizable", i)
				}
				if after += n; restarts.Disturbed(i) {
					kills++
				}
			}
			t.Logf("%d kills, %d answers after them", kills, after)
			if sum.Unknown == 0 || sum.Conflicts == 0 || after == 0 {
				t.Errorf("%d unknown outcomes, %d conflicts, %d answers after %d kills, want some of each", sum.Unknown, sum.Conflicts, after, kills)
			}
			table.add(c.row, sum)
		})
	}
}

// The check can fail: a Redis that keeps its data in memory alone has lost it after a kill.
func TestAServerThatForgetsIsFoundIllegal(t *testing.T) {
	t.Parallel()
	server := redispeer.Start(t, redispeer.Options{Flags: []string{"--appendonly", "no"}})
	var ledgers []store.Ledger
	for range clients {
		l, err := store.Open(t.Context(), server.URI()+"?unsafeNoPersistence=true", store.OpenOptions{})
		must(t, err)
		defer func() { _ = l.Close(t.Context()) }()
		ledgers = append(ledgers, l)
	}
	h, _ := restarts.Round(t.Context(), ledgers, 2, restarts.Plan(2), server)
	if result, err := h.Check(patience); !errors.Is(err, linear.ErrIllegal) {
		t.Errorf("Check() = %+v, %v, want ErrIllegal", result, err)
	}
}
