// Package azuritepeer gives tests an Azure Blob Storage server: Microsoft's Azurite, with its blobs in a folder.
//
// [Shared] is one server for all tests of the test binary, so each test must use a container of its own; [Start]
// starts one that a test may kill, pause and restart. It listens on the loopback interface, without TLS, and ends with
// the test binary, even when that is killed. One of [Start] acknowledges a write, and shows it to readers, when it is
// saved; Azurite itself does so up to 5 s before.
//
// It is a script in the folder server, whose packages npm installs by the lockfile when they are first needed, which
// takes half a minute, into the user's cache folder. It needs Node.js 18 or newer with npm. Azurite's mode without a
// disk isn't used: it hangs ten minutes after its start.
//
// The account is [Account], and its key [Key]. Addresses have the account in their path. Azurite keeps no lifecycle
// policies, no versions and no deleted blobs, has one server with one clock, and doesn't check the date of a request
// that is signed with a key.
//
// If no server can be had, tests are skipped. If the environment variable REQUIRE_STORES, a list separated by commas,
// contains "azurite", they fail instead.
package azuritepeer
