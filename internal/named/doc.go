// Package named runs the suite that every store passes on a server that is named: one in a container, of a version or a
// maker that no package of testutil starts, or a service of a cloud.
//
//	SLOTLEASE_STORE='mysql://root:password@127.0.0.1/test' go test -v ./internal/named
//
// Each case has a table, a prefix, a collection or a file of its own there, and what the suite plants from outside is skipped.
// Data that a case leaves is left: use a server that is thrown away.
package named
