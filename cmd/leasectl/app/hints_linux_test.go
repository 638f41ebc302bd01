package app

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store/sqlite"
)

func TestALogHintsAtTheStoreThatItIsIn(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	r := recordtest.Grant(1, 0, "b")
	now := storeTime(t, l).Add(-time.Minute)
	r.WorkerType, r.WindowStart, r.WindowEnd, r.Token = "t", now, now.AddDate(0, 6, 0), now.UnixMilli()
	if err := l.Append(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "password=hunter2")
	if err := l.(*sqlite.Ledger).Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	p := startRun(t, "sqlite:"+path, "a", nil, "true")
	p.await("; try: leasectl override --worker-type t --seq 1 --store 'sqlite:" + path + "'\n")
}
