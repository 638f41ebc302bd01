// Package verify checks whole ledgers: that each record keeps the protocol's rules, as far as the
// records show it.
//
// It takes the records of one worker type one by one, the oldest first, as [store.Pager] returns
// them, and keeps only the newest few and a bounded number of findings:
//
//	v := verify.New(verify.Options{WorkerType: "invoice-export", Now: stamp.Time})
//	for after := int64(0); ; {
//		page, err := ledger.Page(ctx, "invoice-export", after, store.MaxPage)
//		if err != nil {
//			return err
//		}
//		if len(page) == 0 {
//			break
//		}
//		for _, r := range page {
//			v.Add(r)
//		}
//		after = page[len(page)-1].Seq
//	}
//	for _, f := range v.Report().Findings {
//		fmt.Println(f.Severity, f.Code, f.Seq, f.Text, f.Remedy)
//	}
//
// The package is pure. It reads no clock and no store, and the same records always give the same
// report. Which records workers obey is decided by the rules that they themselves go by.
//
// # Faults, warnings and notes
//
// A [Fault] is a broken rule that workers have gone by, or will: two holders may have worked at
// once, or a token doesn't fence. A [Warning] is something that somebody should look at. A
// [Note] explains what is seen, and asks for nothing.
//
// A record that breaks a rule, and that workers superseded by a reset (or an operator by an
// override), did no harm: no worker obeyed it. It is a Warning with SupersededBy set, because
// somebody wrote it. So is one above a free key, which no worker follows.
//
// # What a ledger can't show
//
// What was trimmed is not seen, and neither is work that ran past a window. Times in a record are
// those of its writer: they show that two clocks disagree, not which one was wrong. Records that a
// store lost are seen only if a worker that had read or appended one noticed that, and lived to say so: see [store.Lost].
// Of what is lost again while it waits, it says nothing more.
package verify
