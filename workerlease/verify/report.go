package verify

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// Finding is one thing that was found.
type Finding struct {
	Code     Code
	Severity Severity
	// Seq is that of the record which it is about; 0 if it is about none, or about a key that can't
	// be read.
	Seq int64
	// SupersededBy is the Seq of the reset or the override because of which no worker goes by the
	// record; 0 if there is none.
	SupersededBy int64
	// Text is one sentence in plain English. It may quote texts of the record, which any program may
	// have written: replace control characters before you show it on a terminal.
	Text string
	// Remedy is what somebody can do about it.
	Remedy string
}

// Count is how often a code was found.
type Count struct {
	Code     Code
	Severity Severity
	Count    int
}

// Report is what was found in the ledger of a worker type.
type Report struct {
	WorkerType string
	// Records is how many records were read, and First and Last are the Seqs of the oldest and of the
	// newest; 0 if there are none.
	Records     int
	First, Last int64
	// Terms and Grants count what was granted, of what workers obeyed.
	Terms, Grants int
	// Missed counts slots that nobody claimed, by the schedules in the records, and Skipped those that nobody
	// began because the job still ran for an earlier one. MissedMore says that there were more than were counted.
	Missed, Skipped int
	MissedMore      bool
	// Faults, Warnings and Notes count all that was found.
	Faults, Warnings, Notes int
	// Counts are sorted by severity, the worst first, and then by code.
	Counts []Count
	// Findings are in the order of their Seq. Of each code and severity there are at most
	// [MaxFindings]: the first half of them, and the newest.
	Findings []Finding
}

// Sound reports that no rule of the protocol is broken, as far as the ledger shows it.
func (r *Report) Sound() bool { return r.Faults == 0 }

// MaxFindings is how many findings of one code and severity a Report has at most.
const MaxFindings = 20

// kind is what findings are counted by.
type kind struct {
	code     Code
	severity Severity
}

// findings are those of a kind: the first of them, and the newest.
type findings struct {
	count         int
	first, newest []Finding
}

// found are all findings.
type found map[kind]*findings

func (f found) add(x Finding) {
	k := kind{x.Code, x.Severity}
	all := f[k]
	if all == nil {
		all = &findings{}
		f[k] = all
	}
	all.count++
	const half = MaxFindings / 2
	if len(all.first) < half {
		all.first = append(all.first, x)
		return
	}
	if len(all.newest) == half {
		all.newest = slices.Delete(all.newest, 0, 1)
	}
	all.newest = append(all.newest, x)
}

// merge adds other findings, which are kept apart no more.
func (f found) merge(other found) {
	for k, all := range other {
		for _, x := range slices.Concat(all.first, all.newest) {
			f.add(x)
		}
		f[k].count += all.count - len(all.first) - len(all.newest)
	}
}

// into adds the findings to a report.
func (f found) into(r *Report) {
	order := map[Severity]int{Fault: 0, Warning: 1, Note: 2}
	for k, all := range f {
		switch k.severity {
		case Fault:
			r.Faults += all.count
		case Warning:
			r.Warnings += all.count
		case Note:
			r.Notes += all.count
		}
		r.Counts = append(r.Counts, Count{k.code, k.severity, all.count})
		r.Findings = slices.Concat(r.Findings, all.first, all.newest)
	}
	slices.SortFunc(r.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(order[a.Severity], order[b.Severity]), cmp.Compare(a.Code, b.Code))
	})
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(order[a.Severity], order[b.Severity]), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
	})
}

// clone is a copy that can be added to.
func (f found) clone() found {
	c := maps.Clone(f)
	for k, all := range c {
		c[k] = &findings{all.count, slices.Clone(all.first), slices.Clone(all.newest)}
	}
	return c
}

// line is an error as one line, without the name of its sort.
func line(err error) string {
	return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), store.ErrInvalid.Error()+": ")
}
