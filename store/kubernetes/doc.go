// Package kubernetes keeps ledgers in a namespace of Kubernetes, 1.21 or later: [Open] makes a [store.Ledger] from a URI
// such as k8s:jobs, by the pod's service account or a kubeconfig. Workers in a cluster need no other store.
//
// It is a module of its own, so that who doesn't import it links nothing of Kubernetes'. Of client-go it uses the
// kubeconfig, the credentials and TLS. Requests are its own: client-go's limit of five in a second, and its repetitions, would
// delay an operation without a word.
//
// # Objects
//
// A record is one ConfigMap, created once, and immutable: the API server refuses to change its content, whoever asks. So a worker's
// right to update can't touch a lease.
//
//	ledger-TYPE.N       N: 2^53-1 less the Seq, in 16 digits
//	roster-TYPE.id-ID   a presence, which is replaced
//
// The content is JSON, in the key json of data ([storekit.Encode]). N falls as the Seq grows: lists are in the order of names,
// and begin with the newest record. In names, which have lower-case letters, digits and hyphens alone, a capital letter A
// is -ua, a dot -p, an underscore -l, and a hyphen -- or, at the end, -m. A presence whose name is longer than 253 bytes
// has a hash, and its name in the annotation slotlease/name. The labels slotlease/kind (record, presence) and slotlease/type
// select what a list shows:
//
//	kubectl get configmaps -n jobs -l slotlease/kind=record,slotlease/type=invoice-export --sort-by=.metadata.name
//
// A Lease of coordination.k8s.io has no room for a record, and can't be immutable. A custom resource would need its definition
// installed by a cluster's administrator, and would be no safer.
//
// # Guarantees
//
// An append is one create. Kubernetes' [API conventions] promise 409 AlreadyExists if the name is taken, which etcd decides
// in one transaction. What the reply says was stored is compared with what was sent: where admission webhooks
// change records, the append fails with [store.ErrRefused]. Reads and lists have no resourceVersion, which Kubernetes defines
// as the most recent: since 1.31 the API server may take them from its cache, once that has caught up with etcd. If a list isn't
// in the order of names, it is refused.
//
// A create can't depend on another object, so the ledger is no [store.Follower]: workers read the newest record before they extend a
// lease. Resource versions, which only grow, show without a request that a control plane was restored from a backup: when they fall,
// [store.Stamp.History] has another name, and workers claim nothing until all that may have been granted is over.
//
// Nothing was surely stored after 400, 401, 403, 404, 413, 422 and 429, which come before the write, and if there was no connection.
// A 429 is a [store.ThrottledError], with the Retry-After; so is a 503 that has one, but its outcome is unknown, as it is
// after any other 5xx, a 409 for another reason, and a lost connection: read the key back. 403 with "exceeded quota" isn't
// [store.ErrDenied]: the namespace's ResourceQuota is used up.
//
// Operations end with their context. A connection that is silent is given up after some 7 s.
//
// # Namespaces that are refused
//
// A namespace that is being deleted is refused with [store.ErrRefused], and a missing one is [store.ErrMissing]; [Ledger.Init]
// creates it, with the right to. Without the right to read the namespace, which workers don't need, that shows at the first append.
// A record that has ownerReferences, which no worker gives it, is refused when it is read: Kubernetes' garbage collector deletes
// it with its owner. What deletes ConfigMaps for other reasons, such as a cleaner of what looks unused, a GitOps tool that prunes,
// or a person, can't be seen: give ledgers a namespace of their own, and let nothing else write there.
//
// # Rights
//
// [rbac.yaml] has the roles, for kubectl apply -n NAMESPACE -f: a worker may get, list, watch, create, update and delete ConfigMaps,
// and those who only look may get and list them. Update is for presences, delete for trimming, and watch for hints of releases; without
// them everything else works. RBAC can't tell records from other ConfigMaps of the namespace. To create the namespace takes the right to create namespaces.
//
// # The application's own configuration
//
// Options.Config is what a clientset is made of. The ledger makes connections of its own, so that Close leaves clientsets as they are, and
// no rate limiter of theirs holds up a lease. In a pod the token of the service account is read again every minute, as it rotates.
//
// # Costs
//
// Each slot costs a create, and for each worker a list and a GET of /version: leasectl plan --store kubernetes counts them. A list of one worker type passes over the objects of all that
// come before it in the namespace, in the API server's memory. Each record is an event for whatever watches all ConfigMaps of the
// cluster. So use slots of 10 s and more, and up to some dozens of worker types per namespace. Trimming takes a list of
// the names, and a request for each record that goes. Lists with contents ask for a few first, and for more while they are small, so that a
// reply has some 16 MiB at most, whatever else the namespace has. While the API server doesn't answer, an operation that is given up
// cancels its request; of appends, one of each worker type may be stored later. Nothing else is left behind but a watch, which ends with its connection. Kubernetes' fairness ([API priority and fairness]) counts workers as it does
// other service accounts: in a cluster that is overloaded they get 429.
//
// # Time
//
// Each reply has the API server's clock, as the Date header, in whole seconds. API servers are programs in Go, which write it for
// each reply anew. [Ledger.Tail] and receipts have it for free; [Ledger.Now] asks for /version.
//
// Which API server answers can't be seen behind a load balancer. So each stamp allows for the clocks of any two of them to be
// apart by the skew, serverSkew in the URI: 250 ms by default. It is an assumption that can't be checked, and leasectl doctor calls it so. If the clocks are
// further apart, two workers may work at once at the edge of a slot. A proxy that writes a Date of its own adds how old that
// may be: raise serverSkew by it. oneServer=true says that there is one API server, and no skew.
//
// The engine narrows whole seconds down, by the moments at which they change: with one API server, two workers in slots of 5 s
// knew the time to ±0.10 and ±0.25 s after 15 s, and in slots of minutes it is ±0.4 s; the skew comes on top. So FailoverWithin should be at
// least eight times that, and 4 × Margin ([Ledger.FailoverFloor]).
//
// # Durability
//
// It is that of the etcd cluster below the API servers: a record that is acknowledged has been synced by a majority of its members.
// A control plane that keeps its data elsewhere (kine) has what that keeps. One that is restored from a backup has lost what
// is newer: stop all workers first.
//
// # Hints
//
// The ledger is a [store.Watcher], by Kubernetes' watch, if the worker has the right to: workers look at once when a lease is
// released.
//
// # What was tested
//
// make kubernetes builds a real API server, and runs the suites of testutil/storetest on it, as a user with the rights of rbac.yaml; and
// kills, pauses and restarts it. Lists of several pages, quotas, namespaces that are being deleted, owners, and rights are tested there,
// too. That takes too long for the continuous tests, which know only a server that replies as it is told: the meaning of each status
// is tested by that. A leasectl with the token of the service account of rbac.yaml works there, and histories are checked for linearizability
// while the API server is killed. Not tested: a pod, several API servers, other versions than 1.36.3, exec
// plugins, and managed control planes.
//
// [API conventions]: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
// [API priority and fairness]: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
// [rbac.yaml]: https://github.com/slotlease/slotlease/blob/main/store/kubernetes/rbac.yaml
// [storekit.Encode]: https://pkg.go.dev/github.com/slotlease/slotlease/store/storekit#Encode
package kubernetes
