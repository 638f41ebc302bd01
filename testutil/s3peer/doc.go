// Package s3peer gives tests an S3 server: Versity's gateway, with its objects in a folder.
//
// [Shared] is one server for all tests of the test binary, so each test must use a bucket of its own; [Start] starts
// one that a test may kill, pause and restart. It listens on the loopback interface, without TLS, and ends with the
// test binary, even when that is killed. It keeps former versions of a bucket that has versioning. It knows no
// lifecycle rules, and says so with NotImplemented.
//
// The server is in the folder server, a module of its own. It is built when it is first needed, which takes two
// minutes, and kept in the user's cache folder. It needs Unix, and a temporary folder whose file system has extended
// attributes.
//
// Requests are signed with [ID] and [Secret]. [Reader] with the same secret may do what the policy of a bucket says.
//
// If no server can be had, tests are skipped. If the environment variable REQUIRE_STORES, a list separated by commas,
// contains "s3", they fail instead.
package s3peer
