package cosmos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Account is the state of an account, by its own properties.
type Account struct {
	// ReadAt is when the properties were read, by Options.Clock; zero if never.
	ReadAt time.Time
	// Consistency is the account's default consistency level: Strong,
	// BoundedStaleness, Session, ConsistentPrefix or Eventual. Empty if the account
	// doesn't say.
	Consistency string
	// WriteRegions and ReadRegions are names, in the account's own order.
	WriteRegions, ReadRegions []string
	// MultipleWrites is true for an account that takes writes in several regions.
	// Such an account is refused.
	MultipleWrites bool
	// PartitionFailover is true if single partitions may fail over to another region by
	// themselves (per-partition automatic failover).
	PartitionFailover bool
	// Verified is false if the account doesn't say whether it takes writes in several
	// regions.
	Verified bool
}

// Account returns the newest known state of the account. It is read at the first use,
// every ten minutes, and when the SDK reads it for other reasons.
func (l *Ledger) Account() Account {
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	a := l.link.account
	a.WriteRegions, a.ReadRegions = slices.Clone(a.WriteRegions), slices.Clone(a.ReadRegions)
	return a
}

// Warning describes in one line how the account is weaker than a ledger wants, and the
// consequences. It is empty if there is nothing to report, or nothing known yet.
func (a Account) Warning() string {
	if a.ReadAt.IsZero() {
		return ""
	}
	var all []string
	for _, f := range a.flaws() {
		all = append(all, f.Error())
	}
	return strings.Join(all, "; ")
}

func (a Account) strong() bool { return a.Consistency == string(azcosmos.ConsistencyLevelStrong) }

// flaws are the shortcomings of an account that is used all the same.
func (a Account) flaws() (all []storekit.Flaw) {
	add := func(is bool, check, remedy, format string, args ...any) {
		if is {
			all = append(all, storekit.Flaw{Check: check, What: fmt.Sprintf(format, args...), Remedy: remedy})
		}
	}
	add(!a.Verified, CheckRegions, "", "the account doesn't say whether it takes writes in several regions; if it does, two workers may hold one lease")
	add(len(a.ReadRegions) > 1 && !a.strong(), CheckRegions, "make Strong the account's default consistency",
		"the account has %d regions and not Strong consistency: an unplanned failover may lose acknowledged leases, and then two workers may hold one slot", len(a.ReadRegions))
	add(a.PartitionFailover, CheckRegions, "turn per-partition automatic failover off, or expect that",
		"single partitions fail over by themselves, which Azure's SDK for Go doesn't follow: meanwhile appends of their worker types fail")
	add(!a.strong() && a.Consistency != string(azcosmos.ConsistencyLevelBoundedStaleness), CheckConsistency, "raise it, if that matters",
		"the account's default consistency is %s, weaker than BoundedStaleness: reads may be stale; that is safe, but costs conflicts, requests and now and then a slot", cmp.Or(a.Consistency, "unknown"))
	return all
}

// accountJSON has the properties of the account that are used.
type accountJSON struct {
	Multiple *bool    `json:"enableMultipleWriteLocations"`
	Writable []region `json:"writableLocations"`
	Readable []region `json:"readableLocations"`
	// Partitions is for information, so it may be of any type.
	Partitions  json.RawMessage `json:"enablePerPartitionFailoverBehavior,omitempty"`
	Consistency struct {
		Default string `json:"defaultConsistencyLevel"`
	} `json:"userConsistencyPolicy"`
}

type region struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

// judgeAccount reads the account's properties on their way to the SDK, and lets
// it know no read regions: reads go where writes go.
func (c *conn) judgeAccount(reply *http.Response) (*http.Response, error) {
	l := c.ledger
	var p accountJSON
	switch {
	case reply.StatusCode >= 200 && reply.StatusCode < 300: // as the SDK takes it
		body, err := io.ReadAll(reply.Body)
		if err == nil {
			err = json.Unmarshal(body, &p)
		}
		if err != nil && !l.unsafe {
			return nil, &exchangeError{fmt.Errorf("%w: the account's properties can't be read: %w", store.ErrRefused, err)}
		}
	case l.unsafe && reply.StatusCode == http.StatusForbidden && !l.misdated(reply):
		// They may not be read. Without the account's properties the SDK can't be used.
		reply.StatusCode, reply.Status = http.StatusOK, "200 OK"
	default:
		return reply, nil
	}
	a := Account{
		ReadAt:      l.clock.Now(),
		Consistency: p.Consistency.Default,
		Verified:    p.Multiple != nil,
		// More than one writable region is as bad, whatever the flag says.
		MultipleWrites:    p.Multiple != nil && *p.Multiple || len(p.Writable) > 1,
		PartitionFailover: string(p.Partitions) == "true",
	}
	for _, r := range p.Writable {
		a.WriteRegions = append(a.WriteRegions, r.Name)
	}
	for _, r := range p.Readable {
		a.ReadRegions = append(a.ReadRegions, r.Name)
	}
	l.link.learn(c, a)

	if p.Readable = p.Writable; l.address.emulated() {
		// Emulators announce addresses that only they can reach.
		p.Writable, p.Readable = []region{}, []region{}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, &exchangeError{err}
	}
	setBody(reply, body)
	return reply, nil
}

// judge says why an account can't be used, or nil.
func (l *Ledger) judge(a Account) error {
	switch {
	case a.MultipleWrites:
		return storekit.Flaw{
			Check: CheckRegions, Level: store.LevelFail, What: "account " + l.address.host + " takes writes in several regions, each of which accepts the same key",
			Remedy: "turn multi-region writes off",
		}.Refuse()
	case !a.Verified && !l.unsafe:
		return storekit.Flaw{
			Check: CheckRegions, Level: store.LevelFail, What: "account " + l.address.host + " doesn't say whether it takes writes in several regions",
			Remedy: "accept the danger with UnsafeUnverifiedAccount (unsafeUnverifiedAccount=true in the URI), or use another",
		}.Refuse()
	}
	return nil
}
