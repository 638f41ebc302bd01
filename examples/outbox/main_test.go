package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

func TestEachOrderIsPublishedAndAnOldTokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		const want = `anna publishes order 1
anna publishes order 2
anna publishes order 3
ben publishes order 4
ben publishes order 5
anna is refused: a later lease has published already
`
		if out.String() != want {
			t.Errorf("output:\n%s\nwant:\n%s", &out, want)
		}
	})
}
