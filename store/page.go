package store

import "context"

// MaxPage is the largest number of records that one Page returns.
const MaxPage = 1000

// Pager is a Ledger that can read the records of a worker type from the oldest to the newest,
// a page at a time. Ledgers without it are read by Get, key by key.
type Pager interface {
	// Page returns the oldest records with Seq > after, oldest first: at most limit of them,
	// and at most MaxPage. Only a page without any says that there are no more. Documents are
	// decoded as by Get.
	//
	// Unreachable records, whose Seq is unreadable or not in 1 … MaxSeq, are passed over: Tail
	// reports them. So an after below 1 begins with the oldest record.
	//
	// Page is as strongly consistent as Tail. It passes over no record that was acknowledged
	// before the call, but for those that are trimmed meanwhile: so a ledger that is read page
	// by page may begin with a gap, and has none else that isn't stored.
	Page(ctx context.Context, workerType string, after int64, limit int) ([]Record, error)
}
