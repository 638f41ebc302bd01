// Package explain says who had a slot at a time, what each worker that is known did, and why it
// didn't get it, by the records of a ledger and its roster. leasectl why shows it.
//
//	records, stamp, err := ledger.Tail(ctx, "invoice-export", 200)
//	presences, err := roster.Presences(ctx, "invoice-export")
//	e := explain.Explain(explain.Question{At: at, Now: stamp.Time, Records: records, Presences: presences})
//	for _, v := range e.Workers {
//		fmt.Println(v.InstanceID, v.Reason, v.Certain)
//	}
//
// The package is pure. It reads no clock and no store, changes no argument, and the same question
// always has the same answer.
//
// # What can't be known
//
// A ledger keeps the claims of those that won, and none of those that lost. A roster keeps the
// newest word of each worker alone, for 24 h after it was last seen. So of older slots it is mostly
// not known what a worker did in them, and the reason is [Unknown]. A reason that follows only if
// what a worker says now was so then, too, is not [Verdict.Certain].
//
// The texts of workers and records are passed on as they are: any program may have written
// them. A program that shows them on a terminal cleans them first, as leasectl does.
package explain
