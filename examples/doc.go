// Package examples holds programs to copy from, one in each folder, and a test
// that runs them all. Those with a test of their own show how such a program is
// tested, in no time. The folder gocron is a module of its own.
package examples
