package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/benbjohnson/clock"
)

func TestTwoNodesShareAllTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out, clock.New()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(out.String()) {
			n++
			var slot, all, north, south int
			_, err := fmt.Sscanf(line, "slot %d: %d tenants, %d served by north, %d by south\n", &slot, &all, &north, &south)
			if err != nil || slot != n || all != tenants || north+south != tenants {
				t.Errorf("%q (%v), want that each of %d tenants is served once in slot %d", line, err, tenants, n)
			}
			if north == 0 || south == 0 {
				t.Errorf("%q, want that both have a share: chance gives one all in 1 of 2^%d runs", line, tenants-1)
			}
		}
		if n != 2 {
			t.Errorf("output:\n%s\nwant two lines", &out)
		}
	})
}
