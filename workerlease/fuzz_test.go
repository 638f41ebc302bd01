package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
	"github.com/slotlease/slotlease/workerlease"
)

// workerTypes is the rule for worker types in the plainest form.
var workerTypes = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// FuzzOptions gives StartLeasing no ledger, so that nothing is ever started: what
// it says of the options must be what they deserve, and it must accept of texts
// just what stores accept.
func FuzzOptions(f *testing.F) {
	const second = int64(time.Second)
	f.Add("job", "worker-1", "", "note", "", 0, 0, 60*second, int64(0), int64(0), int64(0), int64(0))
	f.Add("", "", "\x00", "\xff", "", 8, 3, int64(1), int64(-1), int64(-1), int64(1), int64(1))
	f.Add("a/b", "i\xff", "g", strings.Repeat("m", 8193), "every 5m", -1, -1, 60*second, 301*second, 301*second, 200*second, 3600*second)
	f.Add(strings.Repeat("a", 64), strings.Repeat("i", 257), strings.Repeat("g", 257), "", "cron 0,1 * * * *", 7, 2, int64(0), 300*second, 300*second, 30*second, 7200*second)
	f.Add("jоb", "", "", "", "\x00", 0, 0, int64(0), int64(0), int64(0), 10*second/1000, int64(0))
	f.Add("job", "WorkerType: ", "\nWorkerType: ", "", strings.Repeat("s", 513), 0, 0, int64(0), int64(0), int64(0), 150*second, int64(0))
	f.Add("job", "", "", "", "", 0, 0, int64(367*24*3600)*second, int64(0), int64(0), int64(0), int64(0))
	five := slots.Must(slots.Every(5 * time.Minute))
	f.Fuzz(func(t *testing.T, workerType, instanceID, group, metadata, schedule string, rank, tie int, interval, lead, step, margin, retention int64) {
		o := workerlease.Options{
			WorkerType: workerType, InstanceID: instanceID, Group: group, Metadata: metadata, Priority: rank, TieBreak: priority.TieBreak(tie),
			LeaseInterval: time.Duration(interval), Lead: time.Duration(lead), Step: time.Duration(step), Margin: time.Duration(margin),
			Retention: time.Duration(retention),
		}
		if schedule != "" {
			o.Schedule = wordy{five, schedule}
		}
		w, err := workerlease.StartLeasing(context.Background(), nil, o, workerlease.Callbacks{})
		if w != nil || !errors.Is(err, workerlease.ErrOptions) {
			t.Fatalf("StartLeasing() = %v, %v, want nil, ErrOptions", w, err)
		}
		got := map[string]string{}
		var lines []string
		for _, p := range workerlease.OptionErrors(err) {
			lines = append(lines, p.Error())
			name, why, _ := strings.Cut(p.Error(), ": ")
			if _, twice := got[name]; twice {
				t.Errorf("StartLeasing() = %v, want one problem with %s", err, name)
			}
			got[name] = why
			if i := strings.IndexFunc(why, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(why) || len(why) > 1000+4*len(schedule) {
				t.Errorf("StartLeasing() = %q, want a short line that can be shown", p)
			}
		}
		if list := strings.Join(lines, "\n"); !strings.HasSuffix(err.Error(), workerlease.ErrOptions.Error()+": "+list) {
			t.Errorf("StartLeasing() = %q, want it to end with the list of its problems, %q", err, list)
		}

		// What stores say of a record with these texts.
		stored := func(change func(r *store.Record)) error {
			r := storetest.Grant("job", 7)
			change(&r)
			return r.Check()
		}
		whole := interval%int64(time.Millisecond) == 0 && interval >= int64(slots.MinInterval) && interval <= int64(slots.MaxInterval)
		slot := time.Duration(interval)
		if interval == 0 || schedule != "" {
			slot, whole = 5*time.Minute, interval == 0
		}
		outside := func(d int64, most time.Duration) bool { return d < 0 || time.Duration(d) > most }
		want := map[string]bool{
			"ledger": true, "LeaseAllocated": true,
			"WorkerType":    !workerTypes.MatchString(workerType),
			"InstanceID":    instanceID != "" && stored(func(r *store.Record) { r.InstanceID = instanceID }) != nil,
			"Group":         stored(func(r *store.Record) { r.Group = group }) != nil,
			"Metadata":      stored(func(r *store.Record) { r.Metadata = metadata }) != nil,
			"Schedule":      schedule != "" && stored(func(r *store.Record) { r.Schedule = schedule }) != nil,
			"Priority":      rank < 0 || rank > 7,
			"TieBreak":      tie < 0 || tie > 2,
			"LeaseInterval": !whole,
			"Lead":          outside(lead, priority.MaxLead),
			"Step":          outside(step, priority.MaxLead),
			"Retention":     retention != 0 && retention < int64(2*time.Hour),
			// Without a schedule there is nothing to measure the margin by.
			"Margin": margin != 0 && (margin < int64(10*time.Millisecond) || (whole || schedule != "") && time.Duration(margin) >= slot/2),
		}
		for name, bad := range want {
			if _, reported := got[name]; reported != bad {
				t.Errorf("StartLeasing(%+v) = %v, want a problem with %s: %v", o, err, name, bad)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Errorf("StartLeasing(%+v) = %v, want no problem with anything else", o, err)
		}
		if err := stored(func(r *store.Record) { r.WorkerType = workerType }); (err != nil) != want["WorkerType"] {
			t.Errorf("stores say %v of %q, want the same as of options", err, workerType)
		}
		if want["WorkerType"] {
			named, text := store.CheckWorkerType(workerType), fmt.Sprintf("is %.70q: ", workerType)
			if workerType == "" {
				text = "is empty: "
			}
			says := func(e *workerlease.OptionError) bool {
				return e.Field == "WorkerType" && e.Unwrap().Error() == named.Error() && e.Error() == "WorkerType: "+text+e.Rule &&
					len(e.Rule) > 40 && strings.HasSuffix(named.Error(), ": "+e.Rule)
			}
			if !slices.ContainsFunc(workerlease.OptionErrors(err), says) {
				t.Errorf("StartLeasing() = %v, want what the store says of it: %v", err, named)
			}
		}
	})
}
