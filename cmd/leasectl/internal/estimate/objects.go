package estimate

import (
	"fmt"
	"math"
	"time"
)

// In names of objects, the newest record is the first, and a trim lists what is older than a record. S3 begins a list at
// a name; Azure and Kubernetes pass over what comes before it, a page at a time.
const (
	s3Page         = 1000
	azurePage      = 5000
	kubernetesPage = 1000
)

// requestsTo are the requests of a store of objects, of which a ledger has up to most records when it is trimmed.
func requestsTo(kind string, most float64) prices {
	asking := func(kind int, n float64) cost {
		c := cost{Requests: n}
		c.Kinds[kind] = n
		return c
	}
	p := prices{
		now: asking(dating, 1), append: asking(putting, 1), get: asking(getting, 1), delete: asking(deleting, 1),
		presence: asking(putting, 1), renewal: asking(putting, 1), look: asking(getting, 1), dated: true,
	}
	// A worker reads two records, to see whether the head contradicts the one below it.
	p.tail = asking(listing, 1).plus(asking(getting, 2))
	listed, page := most, azurePage
	switch kind {
	case S3:
		listed, page = 1, s3Page // Those that are deleted fit into one list.
	case Kubernetes:
		page = kubernetesPage
		p.tail = asking(listing, 1) // which shows what is in them
		p.presence, p.renewal = asking(updating, 1), asking(updating, 1)
	}
	p.trim = asking(listing, 1+math.Ceil(listed/float64(page)))
	return p
}

// poorly is the length of slots in which a worker that wins by a clock of whole seconds, and has waited for no more
// than a slot, looks at the time again before it appends.
const poorly = 20 * time.Second

// tooShort says that slots are too short for the store; empty if they aren't.
func (e Estimate) tooShort() string {
	if least := shortest[e.Store]; e.Timing.ShortestSlot < least {
		return fmt.Sprintf("Slots of less than %v are too short for this store: many are never worked.", least)
	}
	return ""
}

// dated are a winner's operations if each append shows the time: in long slots that saves most looks at it while it
// extends. In short ones a clock of whole seconds takes one more. Both are the most that there may be.
func dated(slot time.Duration, won, extending operations) (operations, operations) {
	if slot < poorly {
		won.Now++
	}
	extending.Now = 0
	return won, extending
}
