// Package s3 keeps ledgers in a bucket of Amazon S3, or of a service with its interface: [Open] makes a
// [store.Ledger] of a URI.
//
// # Objects
//
//	FOLDER/ledger/WORKERTYPE/N   a record, as JSON (storekit.Encode); N is 2^53-1 less its Seq, in 16 digits
//	FOLDER/ledger/-probe         an object of two bytes, see below
//	FOLDER/roster/WORKERTYPE/id-ID   a presence, as JSON
//
// A record is put once, with If-None-Match: *, and never replaced. Lists are in the order of names, so that they begin
// with the newest record. A list that isn't is an error, since the head could be missed.
//
// # Guarantees
//
//   - Of any number of puts with If-None-Match to one name, at most one succeeds; the others get 412 ([conditional
//     writes]). That is the one atomic operation that a ledger needs.
//   - Reads and lists are strongly consistent: they see every put that was acknowledged before ([consistency]).
//   - 412 is store.ErrConflict. 409 (ConditionalRequestConflict) says that another request for the name is in
//     progress: the put is sent again, up to four times in 150 ms, and is unknown after that. It is unknown, too, after
//     5xx and without a reply. After 401, 403, a missing bucket, and a wrong region nothing was stored.
//
// An operation ends with its context. The SDK's own retries are off; it is told no deadline, and is cancelled at it.
// Nothing waits at the service then: an append may be made later, so its outcome is unknown.
//
// # Time
//
// The service's clock is the Date of its replies, in whole seconds. A server may renew it only once a second, so that
// a stamp has a granularity and a largest age of 1 s. How far the clocks of S3's servers are apart isn't published:
// [Options.ServerSkew], 250 ms by default, is an assumption. One stamp leaves ± (1 s + skew + round trip / 2); workers
// that look again know it better, ± 0.8 s as measured. So of a slot of 10 s some 8 s are worked in, and
// workerlease.Options.FailoverWithin below 11 s is refused, and so are slots below 2.4 s ([Ledger.FailoverFloor]).
//
// LastModified of an own append would not be better: it has whole seconds, too, nothing says at which moment of a put
// it is read, and it may be the clock of another server.
//
// Requests are signed with a date, which the service refuses if it is wrong by more than 15 min. It is the service's
// own from the second request on, and one that was refused for its date is sent again. So the clock of the worker's
// machine doesn't matter, but for temporary credentials, whose end the SDK measures by it.
//
// # What is refused
//
// Before the first use, every ten minutes, and when requests fail as they do after a change, the bucket is checked. It
// is refused with [store.ErrRefused]
//
//   - if a lifecycle rule is in force that deletes records, and would delete the newest, or that moves them to
//     GLACIER or DEEP_ARCHIVE, where they can't be read. Rules for tags, for objects above 128 KiB, for other prefixes
//     and for noncurrent versions are none. Without the right to see the rules [Ledger.Warning] says so;
//   - if the service ignores If-None-Match. Each handle finds out once, before its first operation, unless it is
//     ReadOnly: it puts FOLDER/ledger/-probe, twice if it isn't there yet. That can't show whether the condition is
//     atomic: run testutil/storetest against a service that isn't listed below.
//
// Names of directory buckets (whose lists have no order), table buckets, access points and multi-region access points
// are refused in the URI. Don't use a service whose reads or lists are eventually consistent, or a bucket that takes
// writes in several places: neither can be seen.
//
// Versioning does no harm, and Object Lock neither: a deletion hides the object, and the name is free or not, as the
// service likes. But all that was trimmed, and each state of a presence, is kept and paid for until a lifecycle
// rule deletes noncurrent versions; Warning says so.
//
// # Durability
//
// S3 acknowledges a record when several machines in at least three availability zones have it. Replication to another
// bucket is asynchronous: a copy lacks the newest records, and leases among them. So no copy may take over before the
// longest lease has ended with all workers stopped. See [Ledger.Durability].
//
// # Rights
//
// Keys come from the environment (AWS_ACCESS_KEY_ID …), the files of the AWS command line, or a role, never from the
// URI. leasectl init --print, or [Ledger.InitScript], has the policy that workers need.
// Without s3:DeleteObject everything works but trimming and leaving the roster. For people who look s3:ListBucket and
// s3:GetObject suffice. [Ledger.Init] creates the bucket, with s3:CreateBucket, unless it is there. With the condition
// s3:if-none-match in a bucket policy for FOLDER/ledger/*, nobody can overwrite a record.
//
// # The application's own client and keys
//
// With Options.Client requests go where those of the application's *s3.Client go, with its credentials, HTTP client and
// middleware, and with settings of the ledger's own: no retries, since a second put would be refused for the first, the
// service's date in signatures, and no acceleration. Options.Credentials takes any aws.CredentialsProvider. By default it is the
// SDK's chain, which knows roles for service accounts (IRSA), pod identities and the roles of machines, and renews what
// they give. A key that the service refuses is asked for again, without a restart. An HTTP client that limits its connections (MaxConnsPerHost)
// makes operations wait for one, until their contexts end.
//
// # Costs
//
// An append is one PUT, a Get one GET, Now one HEAD, and a tail one LIST and a GET for each record, of which workers
// read two. A trim is two LISTs and, for each record, a DELETE, which is free. So for three workers a slot costs 1 PUT,
// 3 LIST, 6 GET and 3 HEAD. leasectl plan --store s3 counts them. Each handle pays one PUT when it is opened, and two GETs
// every ten minutes. The roster costs a PUT for each presence.
//
// # What was tested, and what wasn't
//
// The conformance suite, the suite of outages and a race of processes run against [Versity's gateway] 1.8.0 on a file
// system. Lifecycle rules, 409, 5xx, throttling and redirects were played after Amazon's documentation, because that
// gateway has none. Amazon S3 itself was not tested. So what is said of its atomicity, its consistency, its Date and
// the skew of its clocks rests on documentation or, as said, on assumption.
//
// [conditional writes]: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
// [consistency]: https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel
// [Versity's gateway]: https://github.com/versity/versitygw
package s3
