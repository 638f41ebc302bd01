// Package examples holds programs to copy from, one in each folder, and a test
// that runs them all.
package examples
