package azblob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckCondition: the service heeds If-None-Match.
	CheckCondition = "condition"
	// CheckRegions: a failover loses no records.
	CheckRegions = "regions"
	// CheckImmutability: old records can be deleted.
	CheckImmutability = "immutability"
)

// probeName is the name, in the ledger's folder, of a blob that shows whether the service heeds If-None-Match. It is
// beside the worker types, none of which can have this name, so that who may append may write it.
const probeName = "ledger/-probe"

// check finds out whether the container can keep a ledger.
func (l *Ledger) check(ctx context.Context) error {
	if err := l.look(ctx); err != nil {
		return err
	}
	flaws, err := l.inspect(ctx)
	if err != nil {
		return err
	}
	var warnings []string
	for _, f := range flaws {
		warnings = append(warnings, f.Error())
	}
	text := strings.Join(warnings, "; ")
	l.warning.Store(&text)
	if l.readOnly {
		return nil
	}
	return l.prove(ctx)
}

// Warning is what somebody should see to: a second region, and a policy that keeps records.
func (l *Ledger) Warning() string {
	if text := l.warning.Load(); text != nil {
		return *text
	}
	return ""
}

// inspect are the flaws of account and container that can be seen. None of them makes the ledger wrong.
func (l *Ledger) inspect(ctx context.Context) (flaws []storekit.Flaw, err error) {
	p, err := ask(l, func() (container.GetPropertiesResponse, error) { return l.api.GetProperties(ctx, nil) })
	if err != nil && !untold(err) {
		return nil, err
	}
	if err == nil && (isTrue(p.HasImmutabilityPolicy) || isTrue(p.HasLegalHold)) {
		flaws = append(flaws, storekit.Flaw{
			Check: CheckImmutability, What: fmt.Sprintf("the container %s has an immutability policy or a legal hold: records can't be trimmed, and presences not renewed", l.address.container),
			Remedy: "use a container without",
		})
	}
	a, err := ask(l, func() (container.GetAccountInfoResponse, error) { return l.api.GetAccountInfo(ctx, nil) })
	if err != nil && !untold(err) {
		return nil, err
	}
	if err == nil && a.SKUName != nil {
		flaws = append(flaws, judgeSKU(string(*a.SKUName))...)
	}
	return flaws, nil
}

// judgeSKU is the flaw of an account that is copied to another region, with delay.
func judgeSKU(name string) []storekit.Flaw {
	if !strings.Contains(name, "GRS") && !strings.Contains(name, "GZRS") {
		return nil
	}
	return []storekit.Flaw{{
		Check: CheckRegions, What: fmt.Sprintf("the account is copied to a second region with delay (%.30s): a failover loses the newest records, and leases among them", name),
		Remedy: "use an account with ZRS, or stop all workers before a failover, and wait until the longest lease has ended",
	}}
}

func isTrue(b *bool) bool { return b != nil && *b }

// untold reports whether an error says that the service won't tell, or doesn't know what was asked.
func untold(err error) bool {
	switch statusOf(err) {
	case http.StatusForbidden, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// prove finds out by trying whether the service heeds If-None-Match, once for each handle. Who may not write finds out
// nothing, and can't append either.
func (l *Ledger) prove(ctx context.Context) error {
	if l.proved.Load() {
		return nil
	}
	err := l.tryTwice(ctx)
	if err == nil {
		l.proved.Store(true)
		return nil
	}
	if errors.Is(l.meaning(err).Is, store.ErrDenied) {
		return nil
	}
	return err
}

// tryTwice puts a blob of one name twice, unless it is there.
func (l *Ledger) tryTwice(ctx context.Context) error {
	for range 2 {
		err := objects{l}.Create(ctx, l.address.folder+probeName, []byte(`{}`))
		switch {
		case err != nil && errors.Is(l.meaning(err).Is, store.ErrConflict):
			return nil
		case err != nil:
			return err
		}
	}
	return ignorant().Refuse()
}

func ignorant() storekit.Flaw {
	return storekit.Flaw{
		Check: CheckCondition, What: "the service ignores If-None-Match: it stored two blobs under one name, one in place of the other",
		Remedy: "use Azure itself",
	}
}
