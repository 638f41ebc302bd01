package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestTwoServersThatTakeWritesAreRefusedAlsoFarApart(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	must(t, "Append()", initialised(t, Options{URI: p.primary.URI()}).Append(within(t), storetest.Grant("job", 1)))
	awaits(t, p.standby.URI(), `SELECT count(*) FROM worker_leases`, 1)
	execute(t, p.standby.URI(), `SELECT pg_promote()`)
	awaits(t, p.standby.URI(), `SELECT pg_is_in_recovery()::int`, 0)
	r := &relay{delay: 200 * time.Millisecond}
	far := r.through(t, p.standby.URI())
	at, _, _ := strings.Cut(far[strings.Index(far, "@")+1:], "/")
	uri := strings.Replace(p.primary.URI(), p.primary.Addr(), p.primary.Addr()+","+at, 1)
	documenttest.Says(t, "Append()", opened(t, Options{URI: uri}).Append(within(t), storetest.Grant("job", 2)), store.ErrRefused, "two servers take writes")
}
