//go:build !unix

package interrupt

import "os"

// Passed are no signals: only Unix has some for the command.
func Passed() (signals <-chan os.Signal, stop func()) { return nil, func() {} }
