package audit

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestEachRuleIsChecked(t *testing.T) {
	minute := recordtest.Minutes
	first := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	first.Attempt = 1
	extension, later := recordtest.Part(2, first, 1, 2), recordtest.Grant(2, 1, "b")
	released, done := recordtest.Release(first, 2, minute(0.5)), recordtest.Done(first, 2, minute(5), minute(1))
	failed := recordtest.Outcome(first, minute(0.5), store.Failed)
	with := func(r store.Record, change func(r *store.Record)) store.Record {
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		then []store.Record // after the first
		want string
	}{
		"another slot":             {[]store.Record{later, recordtest.Grant(3, 9, "a")}, ""},
		"an extension":             {[]store.Record{extension}, ""},
		"with a new token":         {[]store.Record{with(extension, func(r *store.Record) { r.Token++ })}, "record 2: extends a term with the token 1772452800001, not 1772452800000"},
		"after a gap":              {[]store.Record{with(extension, func(r *store.Record) { r.WindowStart = minute(1.5) })}, "record 2: extends a term that ended at 2026-03-02T12:01:00.000Z from 2026-03-02T12:01:30.000Z on"},
		"too early":                {[]store.Record{with(extension, func(r *store.Record) { r.WindowStart = minute(0.5) })}, "record 2: window from 2026-03-02T12:00:30.000Z overlaps one to 2026-03-02T12:01:00.000Z"},
		"of a release":             {[]store.Record{released, recordtest.Part(3, first, 0.5, 2)}, "record 3: token 1772452800000 is not higher than 1772452800000"},
		"of an older term":         {[]store.Record{later, recordtest.Part(3, first, 10, 11)}, "record 3: token 1772452800000 is not higher than 1772453100000"},
		"a release":                {[]store.Record{released, recordtest.Grant(3, 1, "b")}, ""},
		"its rest for another":     {[]store.Record{released, with(recordtest.Part(3, later, 0.5, 1), func(r *store.Record) { r.Token = first.Token + 1 })}, ""},
		"a foreign release":        {[]store.Record{with(released, func(r *store.Record) { r.Claim = "another" })}, "record 2: releases a term that isn't the newest"},
		"with another token":       {[]store.Record{with(released, func(r *store.Record) { r.Token++ })}, "record 2: releases a term that isn't the newest"},
		"a release of a release":   {[]store.Record{released, recordtest.Release(first, 3, minute(0.5))}, "record 3: releases a term that isn't the newest"},
		"windows overlap":          {[]store.Record{recordtest.Part(2, later, 0, 1)}, "record 2: window from 2026-03-02T12:00:00.000Z overlaps one to 2026-03-02T12:01:00.000Z"},
		"a token that falls":       {[]store.Record{with(later, func(r *store.Record) { r.Token = 1 })}, "record 2: token 1 is not higher than 1772452800000"},
		"a gap in the keys":        {[]store.Record{recordtest.Grant(3, 1, "b")}, "record 3: comes after 1"},
		"done":                     {[]store.Record{done}, ""},
		"done, with a moved end":   {[]store.Record{with(done, func(r *store.Record) { r.WindowEnd = minute(2) })}, "record 2: is of kind done, and changes the term of 1"},
		"done, which is forgotten": {[]store.Record{done, recordtest.Grant(3, 1, "b")}, "record 3: is done until 0001-01-01T00:00:00.000Z, and the one before until 2026-03-02T12:05:00.000Z"},
		"done without a job":       {[]store.Record{with(done, func(r *store.Record) { r.Attempt = 0 })}, "record 2: is done, but no job of a slot"},
		"an outcome":               {[]store.Record{recordtest.Told(first, 2, failed)}, ""},
		"an outcome of a holder":   {[]store.Record{with(recordtest.Told(first, 2, failed), func(r *store.Record) { r.InstanceID = "b" })}, "record 2: is of kind outcome, and changes the term of 1"},
		"an outcome of nothing":    {[]store.Record{with(recordtest.Told(first, 2, failed), func(r *store.Record) { r.Metadata = "{}" })}, `record 2: tells no outcome: "{}"`},
		"a reset":                  {[]store.Record{with(later, func(r *store.Record) { r.Kind = store.KindReset })}, "record 2: of kind reset, which no worker had a reason to write"},
		"an override":              {[]store.Record{with(later, func(r *store.Record) { r.Kind, r.WindowEnd = store.KindOverride, r.WindowStart })}, "record 2: of kind override, which no worker had a reason to write"},
		"a defect":                 {[]store.Record{{Seq: 2, Defect: "no token"}}, "record 2: invalid record: no token"},
	} {
		if got := strings.Join(Ledger(append([]store.Record{first}, test.then...)), "\n"); got != test.want {
			t.Errorf("%s: Ledger() = %q, want %q", name, got, test.want)
		}
	}
}
