package sqlite

import "golang.org/x/sys/unix"

// create makes an empty file, with the rights that the umask leaves of 0666 and the group that its folder
// gives: SQLite would leave out the group's right to write. The file isn't opened, since closing it would drop
// the locks that another handle may have by then. What goes wrong shows when SQLite opens it.
func create(path string) { _ = unix.Mknod(path, unix.S_IFREG|0o666, 0) }
