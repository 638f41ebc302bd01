//go:build sqlserver

package storeuri_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

func TestWithItsBuildTagSQLServerIsAStoreLikeOthers(t *testing.T) {
	target, err := parse("sqlserver://me:canary@127.0.0.1:1/jobs?table=leases", "")
	if err != nil || target.Shown != "sqlserver://me:***@127.0.0.1:1/jobs?table=leases" {
		t.Fatalf("target = %+v, %v, want one without the password", target, err)
	}
	l, err := target.Open(t.Context(), true)
	if err != nil {
		t.Fatalf("Open() = %v, want a ledger", err)
	}
	_ = l.Close(t.Context())
	target, err = parse("sqlserver://me:canary@127.0.0.1:1/jobs?applicationIntent=ReadOnly", "")
	if err != nil {
		t.Fatalf("target = %v", err)
	}
	_, err = target.Open(t.Context(), true)
	if f, ok := errors.AsType[*exit.Error](err); !ok || f.Code != exit.Usage || !strings.Contains(err.Error(), "readable secondary") || strings.Contains(err.Error(), "canary") {
		t.Errorf("Open() of a readable secondary = %v, want a mistake in the usage", err)
	}
}
