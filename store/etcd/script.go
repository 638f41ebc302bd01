package etcd

import (
	"cmp"
	"strings"
)

// InitScript returns the rights of a worker, as commands for etcdctl: there is nothing to create.
func (l *Ledger) InitScript() string {
	return strings.NewReplacer("PREFIX", l.c.folder(), "WORKER", cmp.Or(l.c.user, "worker")).Replace(`# for a shell with etcdctl. Nothing is to be created.
# With authentication, a worker needs a role on the whole prefix: rights on a part of it are taken for none.
etcdctl role add slotlease
etcdctl role grant-permission slotlease --prefix=true readwrite PREFIX
etcdctl user add WORKER
etcdctl user grant-role WORKER slotlease
`)
}
