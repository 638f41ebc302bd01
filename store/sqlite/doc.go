// Package sqlite is a ledger in one SQLite file, for workers that are processes
// of one machine. It needs no server and no C compiler.
//
// # The file
//
// The table WorkerLeases has one row per record and the primary key
// (workerType, seq), which decides every race. The file is in WAL mode and each
// append is synced to the disk before it is acknowledged (synchronous=FULL).
// While it is in use SQLite keeps two more files beside it, named like it with
// -wal and -shm at the end; they belong to it and must not be removed, copied
// apart from it, or left behind when it is moved.
//
// Rows are obeyed by their envelope. A fault in it gives a Defect; other columns
// that are NULL, unfit or too long come back empty. Texts of more than 8 KiB are
// never loaded.
//
// A file is recognised by its application_id and user_version. Anything else (a
// text file, another application's database, a ledger of a newer version of this
// package) is refused with [store.ErrRefused] and left untouched.
//
// A file of an earlier version is upgraded in place by the first operation of a
// handle that isn't [Options.ReadOnly], in one transaction. From then on earlier
// versions refuse to open it, while processes of theirs that have it open carry
// on. A handle for reading only reads such files as they are.
//
// New files get the rights 0644 less the process's umask: a ledger holds no
// secrets. To have others, create an empty file with them first; an empty file
// becomes a ledger.
//
// # Reading without the right to write
//
// A handle with [Options.ReadOnly] never needs the right to write. Whether it has
// that right makes a difference, because in WAL mode SQLite reads by means of the
// -wal and -shm files:
//
//   - With the right to write the file and its directory, SQLite creates both
//     files for reading if nobody has the ledger open, and removes them again.
//   - Without that right, on a ledger in use, the handle reads the two files that
//     the workers made. They have the rights of the ledger, and need to be readable
//     like it. The same is true after all workers were killed.
//   - Without that right, on an idle ledger, the handle reads the file as it is,
//     without locks and files. If a worker opens the ledger at that moment, what
//     was read is discarded and read again.
//
// The last case also serves a read-only file system, and a copy of a ledger that
// was closed. A ledger copied with its -wal but without its -shm file can't be
// opened this way. A handle for reading doesn't repair: if a crash interrupted the
// creation or an upgrade of the file, it reports [store.ErrMissing].
//
// # Where the file may be
//
// The file must be on a local file system. WAL mode relies on memory shared
// between processes, so a network file system that two machines mount won't do.
// If the file is replaced, the next operation goes to the file that has the name
// now; an append that was under way reports an unknown outcome. If it is removed,
// operations fail with [store.ErrMissing] until there is one again: a handle that
// has used a ledger makes no new one.
//
// POSIX drops all locks that a process holds on a file when the process closes
// any descriptor of it. A program that leases must therefore not open the
// ledger by other means than this module's SQLite library (no os.ReadFile to
// back it up); other processes may do what they like.
//
// # Store time
//
// On Linux, store time is the kernel's boot clock (CLOCK_BOOTTIME, which goes on
// while the machine is suspended) plus a wall offset. The first process that
// needs the time after a boot reads its wall clock once and stores the offset in
// the table Boot under the kernel's boot id; all others, and itself, use what is
// stored. So all processes agree to the microsecond, and stepping a wall clock,
// or one process having a wrong one, changes nothing until the next boot. It
// follows that workers should be started after the machine has set its clock: an
// offset taken from a wrong clock stays until the machine is booted again.
//
// The stamps have a granularity of 1 µs, no age, and no skew; their server is
// "boot " and the boot id. A frozen virtual machine stops the boot clock; a
// restored snapshot turns it back.
//
// Elsewhere than on Linux store time is the wall clock of [Options.Clock] and
// the server is "wall": correct as long as nobody steps the clock while workers
// run.
package sqlite
