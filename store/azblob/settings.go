package azblob

import (
	"context"
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
	CheckCondition = storekit.CheckCondition
	// CheckRegions: a failover loses no records.
	CheckRegions = "regions"
	// CheckImmutability: old records can be deleted.
	CheckImmutability = "immutability"
)

// rows are the checks of the account and the container. None of them makes the ledger wrong.
func (l *Ledger) rows() []storekit.Check {
	const why = "lifecycle policies belong to the management of the account, which can't be asked with this login: none may delete blobs of this container, or move them to the archive tier"
	return []storekit.Check{
		{Name: store.CheckExpiry, Ask: func(context.Context) (string, error) { return "", storekit.Skip(why) }},
		{Name: CheckRegions, Level: store.LevelWarn, Ask: l.judgeAccount, Standing: true},
		{Name: CheckImmutability, Level: store.LevelWarn, Ask: l.judgeContainer, Standing: true},
	}
}

// judgeAccount looks for an account that is copied to another region, with delay.
func (l *Ledger) judgeAccount(ctx context.Context) (string, error) {
	const sound = "no copy in another region may take over, as far as the account says"
	a, err := ask(ctx, l, func(ctx context.Context) (container.GetAccountInfoResponse, error) {
		return l.api.GetAccountInfo(ctx, nil)
	})
	switch {
	case untold(err), err == nil && a.SKUName == nil:
		return sound, nil
	case err != nil:
		return "", err
	}
	name := string(*a.SKUName)
	if !strings.Contains(name, "GRS") && !strings.Contains(name, "GZRS") {
		return sound, nil
	}
	return storekit.Found("", storekit.Flaw{
		Check: CheckRegions, What: fmt.Sprintf("the account is copied to a second region with delay (%.30s): a failover loses the newest records, and leases among them", name),
		Remedy: "use an account with ZRS, or stop all workers before a failover, and wait until the longest lease has ended",
	})
}

// judgeContainer looks for a policy that keeps records.
func (l *Ledger) judgeContainer(ctx context.Context) (string, error) {
	p, err := ask(ctx, l, func(ctx context.Context) (container.GetPropertiesResponse, error) {
		return l.api.GetProperties(ctx, nil)
	})
	if err != nil && !untold(err) {
		return "", err
	}
	if err != nil || !isTrue(p.HasImmutabilityPolicy) && !isTrue(p.HasLegalHold) {
		return "no policy of the container keeps records, as far as it says", nil
	}
	return storekit.Found("", storekit.Flaw{
		Check: CheckImmutability, Remedy: "use a container without",
		What: fmt.Sprintf("the container %s has an immutability policy or a legal hold: records can't be trimmed, and presences not renewed", l.address.container),
	})
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

// grant is the role that a check is about.
func grant(check string) string {
	if check == store.CheckLedger {
		return "use another key, or grant the role Storage Blob Data Contributor on the container"
	}
	return "grant the role Storage Blob Data Contributor on the container, or a shared access signature with racwdl"
}

// durability is what Microsoft promises of Azure Storage.
var durability = store.Durability{
	Crash:    "All: Azure acknowledges a record when three copies in the region have it.",
	Power:    "All: the three copies are on different racks, and with ZRS or GZRS in different zones.",
	Failover: "With GRS, GZRS and their RA variants a failover to the second region loses what wasn't copied yet, by Microsoft usually less than 15 minutes; with LRS and ZRS there is none.",
}

// script is what Init does as commands for az, and the rights of a worker.
func (l *Ledger) script() string {
	return strings.NewReplacer("ACCOUNT", l.address.account, "CONTAINER", l.address.container, "SERVICE", l.address.service.String()).Replace(`# for a shell with az
az storage container create --account-name ACCOUNT --blob-endpoint SERVICE --name CONTAINER
# The rights of a worker, unless it has a key, or a signature with the permissions racwdl. Put its identity here, and S and G.
az role assignment create --role "Storage Blob Data Contributor" --assignee IDENTITY \
  --scope /subscriptions/S/resourceGroups/G/providers/Microsoft.Storage/storageAccounts/ACCOUNT/blobServices/default/containers/CONTAINER
`)
}
