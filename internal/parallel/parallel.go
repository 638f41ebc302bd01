// Package parallel lets tests that mainly wait run side by side: on a machine with few
// processors, go test runs too few of them at once.
package parallel

import "flag"

// Waiting lets twelve parallel tests run at once, unless -parallel was given. TestMain
// calls it before it runs the tests.
func Waiting() {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p != nil && p.Value.String() == p.DefValue {
		_ = p.Value.Set("12")
	}
}
