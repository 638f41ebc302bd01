// Package peer runs the servers of tests: child processes that are built or
// installed once, print in their first line where they listen, can be killed,
// paused and restarted, and end with the test binary, even when that is killed.
// For the last, a server watches its standard input, a pipe whose other end the
// test binary holds. A guard does that for servers that aren't made for tests: see
// [Program], which needs Linux.
package peer
