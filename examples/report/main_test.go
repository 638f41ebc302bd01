package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/benbjohnson/clock"
)

func TestAReportIsMadeOncePerSlotAndTriedAgainByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out, clock.New()); err != nil {
			t.Fatal(err)
		}
		const want = `anna makes the report
anna failed: the printer has no paper
ben makes the report
ben is done with slot 1
anna makes the report
anna is done with slot 2
`
		if out.String() != want {
			t.Errorf("output:\n%s\nwant:\n%s", &out, want)
		}
	})
}
