package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A role whose search_path begins with a schema in which somebody has made functions, operators and types of the server's names.
func TestASearchPathChangesNothing(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	execute(t, uri, `CREATE SCHEMA trap`)
	execute(t, uri, `CREATE FUNCTION trap.sprung() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END'`)
	for _, f := range []string{
		"clock_timestamp() RETURNS timestamptz", "pg_is_in_recovery() RETURNS boolean", "pg_backend_pid() RETURNS integer", "current_setting(text) RETURNS text",
		"set_config(text, text, boolean) RETURNS text", "octet_length(text) RETURNS integer", "inet_server_addr() RETURNS inet", "host(inet) RETURNS text",
		"to_char(timestamp, text) RETURNS text", "pg_postmaster_start_time() RETURNS timestamptz", "pg_notify(text, text) RETURNS void", "version() RETURNS text",
		"pg_logical_emit_message(boolean, text, text) RETURNS pg_lsn", "json_agg(anyelement) RETURNS json", "pg_current_wal_lsn() RETURNS pg_lsn",
	} {
		execute(t, uri, fmt.Sprintf(`CREATE FUNCTION trap.%s LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END'`, f))
	}
	for _, types := range []string{"text, text", "bigint, bigint", "integer, integer", "bigint, integer", "name, text", "name, name", "oid, oid", "oid, integer", `"char", "char"`} {
		a, b, _ := strings.Cut(types, ", ")
		execute(t, uri, fmt.Sprintf(`CREATE FUNCTION trap.compared(%s) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END'`, types))
		for _, operator := range []string{"=", "<>", "<", "<=", ">", ">="} {
			execute(t, uri, fmt.Sprintf(`CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = trap.compared)`, operator, a, b))
		}
	}
	execute(t, uri, `CREATE FUNCTION trap.joined(text, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END'`)
	execute(t, uri, `CREATE OPERATOR trap.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.joined)`)
	execute(t, uri, `CREATE FUNCTION trap.field(json, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END'`)
	execute(t, uri, `CREATE OPERATOR trap.->> (LEFTARG = json, RIGHTARG = text, FUNCTION = trap.field)`)
	for _, name := range []string{"pg_class", "pg_namespace", "pg_stat_replication", "worker_leases", "json"} {
		execute(t, uri, `CREATE TABLE trap.`+name+` (trapped text)`)
	}
	role := postgrespeer.Role(t, uri, "CREATE ON SCHEMA public", "USAGE ON SCHEMA trap")
	user := strings.TrimPrefix(role[:strings.LastIndexByte(role, ':')], "postgres://")
	user, _, _ = strings.Cut(user, ":")
	execute(t, uri, fmt.Sprintf(`ALTER ROLE %s SET search_path = trap, pg_catalog, public`, user))

	l := initialised(t, Options{URI: role})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	must(t, "AppendAfter()", l.AppendAfter(within(t), storetest.Grant("job", 2), storetest.Grant("job", 1)))
	freed := storetest.Grant("job", 3)
	freed.Kind, freed.WindowStart = store.KindRelease, freed.WindowEnd
	must(t, "Append() of a release", l.Append(within(t), freed))
	for name, call := range documenttest.Operations(l, storetest.Grant("job", 4)) {
		if err := call(within(t)); err != nil && !errors.Is(err, store.ErrNotFound) { // Trim may have come before.
			t.Errorf("%s = %v, want nil", name, err)
		}
	}
	must(t, "Leave()", l.Leave(within(t), "job", []string{"w1"}))
	must(t, "CheckRights()", l.CheckRights(within(t)))
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.FindsNoMore(t, found, CheckDurability)
}
