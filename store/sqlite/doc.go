// Package sqlite keeps ledgers in one SQLite file, for workers that are processes
// of one machine. It needs no server and no C compiler.
//
// # The file
//
// The table WorkerLeases has one row per record. Its primary key (workerType, seq)
// decides every race. The file is in WAL mode, and each append is synced to the
// disk before it is acknowledged (synchronous=FULL). While the file is in use,
// SQLite keeps two more files beside it, with the same name and -wal or -shm at the
// end. They belong to the ledger: don't remove them, and copy or move them together
// with the file.
//
// Readers obey a row by its envelope. A fault in the envelope gives a Defect; other
// columns that are NULL, invalid or too long come back empty. Texts of more than
// 8 KiB are never loaded.
//
// The application_id and user_version of a file mark it as a ledger. Any other file
// (a text file, another application's database, a ledger of a newer version of this
// package) is refused with [store.ErrRefused] and left unchanged.
//
// The tables must stay the package's own. Open refuses a foreign index, constraint or trigger on them, which could
// keep out records whose key is free or drop others, and so does the next append or trim. The error names it.
// So it is with a table that was made anew with another key or other types. Further nullable columns and
// other tables do no harm, and a handle with [Options.ReadOnly] reads all such files that have the key.
//
// [Ledger.Init], or the first other operation but [Ledger.CheckRights], creates a missing file, because a ledger holds no secrets, with
// the rights that the process's umask leaves of 0666 (0644 where the system isn't Linux), and the
// group of a setgid folder. For other rights, first
// create an empty file that has them; an empty file becomes a ledger. If the file is
// removed, operations fail with [store.ErrMissing]: a handle that has used a ledger
// doesn't create a new one.
//
// POSIX drops all locks of a process on a file when the process closes any
// descriptor of it. So a program that leases must open the ledger only through this
// package; don't back it up with os.ReadFile, for example. Other processes may open it
// as they like.
//
// # Appends at the same time
//
// Appends that goroutines of one handle make while another is being committed are committed together
// next, at most 500 in one transaction, so that one sync serves all. A lone append waits for no other.
// If a key is taken, only its append fails. If the transaction fails before its
// commit, each append is repeated in a transaction for itself. If the commit fails, the outcome is
// unknown for all of the group. An append whose context ends before its transaction begins is not
// stored, nor is one that found the file locked for all of [Options.BusyTimeout] ([store.ErrNotStored]). The end of a
// context interrupts no commit.
//
// [Ledger.AppendAfter] looks for the record below in the transaction that stores the new one. So a worker
// notices a copy that was restored into the file itself, as by the .restore of SQLite's shell. A file that was put in its place
// is refused, see below. Stamps therefore name no history.
//
// A handle parses each statement once.
//
// # The roster
//
// The table Roster keeps who is there: one row per worker, with its [store.Presence] as JSON, which
// SQLite's own tools show. It isn't part of the schema: a file of an earlier version gets it by the first Attend, and
// earlier versions pass it over. So does all that decides about leases. Attend and Leave take one transaction for a
// batch, for which appends wait: 15 ms for 600 presences, half a millisecond for 20. The end of
// a context interrupts none of them. Texts of more than 128 KiB are never loaded.
//
// # One file, one path
//
// SQLite names the -wal file, its log, after the path. Two processes that use one file
// by two paths have two logs, don't see each other's records, and would both store the
// same key. So operations fail with [store.ErrRefused] and [ErrUnshared] if
//
//   - the file has more than one hard link;
//   - the file is itself a mount point (Linux): mount its directory into a container,
//     not the file;
//   - the file is on NFS, SMB, FUSE, 9p, Ceph or another file system that two machines or
//     two mounts can use at once (Linux). [Options.UnsafeFileSystem] accepts it;
//   - a handle of any process has the file open with another log (Linux).
//
// Symbolic links are followed, and do no harm. Containers may mount the directory at
// different places, if the name of the file in it is the same.
//
// Before and after each append, a handle looks whether the file, its -wal and its -shm
// are those that it opened, and whether the file has one link. If not, an append that has
// been sent has an unknown outcome, and the handle closes the file and fails every later operation
// with [ErrUnshared] (and [store.ErrMissing] if the file was removed, else [store.ErrRefused]). On Linux it goes
// on when a second link is gone. Stop all workers of such a ledger, and start them again. A handle with
// [Options.ReadOnly] uses the file that is there now.
//
// The last rule of the list needs no look at paths. While a handle is open, it holds a
// lock on one byte of the file, far above those that SQLite uses. The identities of its
// -wal and -shm choose the byte, and the other bytes of that range must be free. These are
// OFD locks, so only Linux has them. Two cases remain everywhere. Records in the log of a
// process that was killed stay there until a worker opens the ledger by the same path, so
// don't rename a ledger that wasn't closed. And two mounts of a network file system see
// each other's locks only if it passes them on.
//
// On macOS and the BSDs, hard links and replaced files are noticed, on Windows replaced
// files. There, nothing notices a file that was mounted by itself.
//
// # Reading without the right to write
//
// A handle with [Options.ReadOnly] never needs the right to write. It reads
// differently with and without that right, because WAL mode works through the -wal
// and -shm files:
//
//   - With the right to write the file and its directory, SQLite creates both files
//     for reading if no other process has the ledger open, and removes them again.
//   - Without that right, while the ledger is in use or after all its workers were
//     killed, the handle reads the two files that the workers made. The process must
//     be able to read them, too; they have the same rights as the ledger.
//   - Without that right, on an idle ledger, the handle reads the file as it is,
//     with no locks and no other files. If a worker opens the ledger meanwhile, the
//     handle discards what it read and reads again.
//
// The last case also serves a read-only file system, and the copy of a ledger that
// was closed. A copy with its -wal but without its -shm file can't be read this way.
// On systems other than Linux, don't let a reader write the directory alone: if it
// opens the ledger just when the last worker closes it, SQLite may create a -wal file
// that the workers can't write. A handle for reading repairs nothing: if a crash
// interrupted the creation or an upgrade of the file, it reports [store.ErrMissing].
//
// # Backups
//
// [Ledger.Backup] copies a ledger while workers use it. Other copies of a ledger that is in use
// lack what is in its -wal. Restoring a copy takes back what was stored since, so keys,
// and perhaps tokens, are given again: stop all workers, wait until every window that was granted is
// over, remove the ledger with its -wal and -shm, move the copy to its place (don't link it), and
// start the workers again.
//
// # Store time
//
// On Linux, store time is the kernel's boot clock (CLOCK_BOOTTIME, which continues
// while the machine is suspended) plus a wall offset. The first process that needs
// the time after a boot reads its wall clock once, and stores the offset in the
// table Boot under the kernel's boot id. All processes use the stored offset, so
// they agree to the microsecond. Stepping a wall clock changes nothing until the
// next boot.
//
// Containers may have a boot id each. A process takes the offset that is in use: from when a
// handle has first read the time until it is closed, its process holds a lock on a byte of the file
// that stands for the offset, whatever becomes of the handle's connection. If none is in use, it takes
// that of its boot id, or one by which the boot began at the same time, to a second. Else it reads the
// wall clock. All this is decided in one transaction, so processes that start at once decide one after
// the other.
//
// If the wall clock was set since another process of the same boot had read it, a command may still work by
// the other offset, though its worker has ended without a release. So while a term may be in force by that, or begins
// within 10 minutes, a process takes that offset if it is at most 10 minutes from the wall clock. Else it has no store
// time until the term is over: operations that need it fail, with an error that names the term and its end. A handle with
// [Options.ReadOnly] gives the wall clock then, with a skew, and [Ledger.Warning] says why. Then, or if no term is in force, the
// other offset is removed. What counts is what workers obey: the newest records of valid worker types, with windows of at
// most 366 days, and nothing that was released or overridden before.
//
// An offset is of another boot if that began, by the wall clock, after the offset was stored, if the boot clock shows less than
// when it was stored, or if the newest record of some worker type was read, by the wall clock, at most 10 minutes from now, and
// the offset shows less than that, and than now. So a file that comes to another machine, and back, doesn't turn time back.
// Of more than 64 rows, those of other boots are removed, too.
//
// Two cases leave no doubt. The wall clock was set forward by more than the machine had run when
// the other offset was stored: both clocks show the same after a boot, and a doubt after each boot
// would cost slots. Or it was set back, and later forward again. It is less grave: the tokens of later leases are higher, and a
// command hardly outlives its worker, with which the task of a Go program dies, and whose guard kills the command of
// leasectl run. It takes boot ids that differ within one boot, too.
//
// Rows with an offset of more than 146 years are foreign, and are ignored. Rows of early versions don't say when they were
// stored, and count as stored a minute after boot.
//
// Start workers after the machine has set its clock: an offset from a wrong clock stays until
// the next boot, too. While store time is more than a second from the wall clock,
// [Ledger.Warning] says so, and workers report it; so does a handle with [Options.ReadOnly], of each
// offset of the boot, those of containers included. [Ledger.Reanchor] takes the wall clock anew,
// for all of them, in a ledger that no worker uses.
//
// The stamps of a handle that writes have a granularity of 1 µs, no age, and no skew. Their server is
// "boot " and the boot id. A boot id that can't be read is an error, and so is a /proc without
// this process, that of another PID namespace: it doesn't show whether the process is in a time
// namespace. A frozen virtual machine stops the boot clock; a restored snapshot turns it back.
//
// Stamps name the reading of the boot clock that they are made from ([store.Stamp].Boottime), as this process
// reads it, in a time namespace, too. Offsets to it don't change while a handle is open, unless that re-anchors
// the ledger or has [Options.ReadOnly]: its workers take the change for a jump of the clock. So workers allow for
// no drift, and a boundary takes their margin. What goes
// for all processes of the machine alike does no harm: NTP changes the rate of the boot clock, a virtual
// machine moves to another host. Those of a handle with [Options.ReadOnly] name none while no worker has
// chosen an offset since boot: then each is made from the wall clock. Nor do stamps of [Options.BootID],
// whose clock a test plays. A process that is restored from a checkpoint (CRIU) gets a boot clock
// that leaves out the time in between, for its own work and for store time alike, so nothing shows that it is
// late: don't restore workers.
//
// On other systems, store time is the wall clock of [Options.Clock] and the server
// is "wall". This is correct unless the clock is stepped while workers run.
package sqlite
