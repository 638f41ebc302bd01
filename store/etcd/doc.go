// Package etcd keeps ledgers in an etcd cluster, version 3.4 or later: [Open] makes a [store.Ledger] from a URI such as
//
//	etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/team/jobs?user=worker
//
// It is a module of its own, so that who doesn't import it links neither etcd's client nor gRPC.
//
// # Keys
//
// A record is one key, made once and never put again:
//
//	team/jobs/ledger/TYPE/N    N: 2^53-1 less the Seq, in 16 digits
//	team/jobs/roster/TYPE/ID
//
// Its value is the record as JSON ([storekit.Encode]). N falls as the Seq grows, so a range in the order of keys begins
// with the newest record, and etcd reads as many as are asked for. With keys that grow along with the Seq a range would have to
// be descending, for which etcd reads all of a ledger, sorts it and throws most of it away. A tail is one request, values
// included.
//
// # Guarantees
//
// An append is one transaction: if the key's create_revision is 0, put it. etcd's [API guarantees] call that atomic, and
// durable when it is acknowledged. etcd's client doesn't send it again, unless a member refused it without looking
// at it: for its token, or for being a learner. Reads are linearizable, as etcd's are by default; none is serializable. No
// lease of etcd's is used.
//
// [Ledger.AppendAfter] has one condition more: that the record below has the very value that its worker has read or written. If a
// newer version has written more into it, a second transaction compares its revision instead.
//
// After a lost connection, a time-out and a change of the leader the outcome is unknown: read the key back. Nothing was
// surely stored if there was no connection, the space or the quota is used up (NOSPACE), the value is too large, the
// rights are missing, the token isn't accepted, or too many requests wait (a [store.ThrottledError]).
//
// Operations end with their context, also while a member is silent. While no endpoint can be reached they fail at once,
// with the reason, and nothing was sent. A connection that is silent is given up after 13 s.
//
// # Clusters that are refused
//
// The endpoints are asked before the first use, every ten minutes, and after failures. A cluster is refused with
// [store.ErrRefused]
//
//   - if its endpoints are of different clusters, by the ids in their replies: each of them takes the same key. Each reply
//     is checked, so a cluster that is made anew below a running worker is refused, too, until the worker is started again;
//   - if its revision falls back, as that of a cluster does which has lost its data: also until the worker is started again;
//   - if the alarm CORRUPT is on;
//   - if all endpoints that answer are learners;
//   - if OneMember is set and there are several members.
//
// A record whose key has a lease of etcd's, which no worker gives it, is refused when it is read: etcd would delete it.
//
// # Rights
//
// With authentication, a worker's user needs a role on the whole prefix; rights on a part of it are taken for none. leasectl
// init --print, or [Ledger.InitScript], has the commands.
//
// A transaction's condition takes the right to read, and etcd has no right to create without one to overwrite and to
// delete: any program with the password can destroy the ledger. Those who only look need read in place of readwrite. The
// password is in the environment (ETCD_PASSWORD), a file (passwordFile) or Options. Tokens are renewed when members have
// forgotten them. With client certificates (cert, key), a user isn't needed.
//
// A password that changes: Options.PasswordFunc gives that of now for each token, which etcd forgets when a password is changed.
//
// # Compaction, space and limits
//
// etcd keeps each revision until it is compacted, which it doesn't do by itself, unless it is started with
//
//	--auto-compaction-mode=periodic --auto-compaction-retention=1h
//
// Records don't need it, since they are put once. Presences do: each worker puts its own, of about 1 KB, every now and then.
// At the end of the quota (--quota-backend-bytes, 2 GiB by default) the alarm NOSPACE stops all appends. [Ledger.Examine]
// looks for both. A value may have 1.5 MiB (--max-request-bytes); a record has less than 100 KiB.
//
// Each slot costs one or two transactions, each of which is synced to disk by a majority, and about one range. Trimming takes
// one request for each record that goes. Lists ask for a few values first, and for more while they are small, so that a reply has some
// 16 MiB at most, whatever other programs store there.
//
// While the cluster doesn't answer, an operation that is given up cancels its request: what was proposed, an append of each worker type at
// most, may be committed later, and its outcome is unknown. A ledger has one connection to each endpoint, and idle ones for dates, which end after 90 s.
// There are no leases and locks of etcd's that stay behind; a watch ends with its connection.
//
// # Time
//
// etcd's API has no clock. [Ledger.Now] takes the Date header of GET /version, which etcd, a program in Go, writes for each
// reply anew, in whole seconds. The member that answered last is asked, and after half a second without an answer the others,
// too. The client port must serve HTTP, as it does unless --listen-client-http-urls is set. Appends and tails give no time.
// A proxy that writes a Date of its own gives its own clock.
//
// Which member gives a worker its time isn't the same for all. So each stamp allows for the clocks of any two members to
// be apart by the skew, serverSkew in the URI: 250 ms by default. It is an assumption: etcd itself only warns beyond 1 s. So the
// clocks of all endpoints that the URI names are compared before the first stamp, which takes a second, and again once a minute while the time is
// asked for: ten dates of each in a second, by which they are known to about 0.1 s. If two are surely further apart than is assumed, stamps have
// what was measured as their skew, and [Ledger.Warning] says which. Between two comparisons a clock may be set, and a member that isn't named, or
// doesn't answer, isn't seen: then two workers may work at once at the
// edge of a slot. oneMember=true says that there is one member, and no skew.
//
// The engine narrows whole seconds down, by the moments at which they change: with one member, two workers in slots of 3 s
// knew the time to ±0.13 and ±0.16 s after 9 s, and in slots of minutes it is ±0.4 s; the skew comes on top. So FailoverWithin should be at least
// eight times that, and 4 × Margin ([Ledger.FailoverFloor]).
//
// # Durability
//
// A record that is acknowledged has been synced to disk by a majority of the members. It survives their crash and loss of power,
// unless they run with --unsafe-no-fsync, and the election of another leader. A cluster that is restored from a snapshot
// has lost what is newer: stop all workers first.
//
// # Hints
//
// The ledger is a [store.Watcher], by etcd's watch: workers look at once when a lease is released.
//
// # What was tested
//
// The suites of testutil/storetest run on real servers: with and without users, killed, paused and restarted. So do clusters of
// three members of which one is killed and one paused, learners, TLS with client certificates, expired tokens, alarms, and the
// errors above, but for too many requests. Histories are checked for linearizability while the server is killed. Not tested:
// a member without a quorum, and other versions than 3.4.23.
//
// [API guarantees]: https://etcd.io/docs/v3.6/learning/api_guarantees/
// [storekit.Encode]: https://pkg.go.dev/github.com/slotlease/slotlease/store/storekit#Encode
package etcd
