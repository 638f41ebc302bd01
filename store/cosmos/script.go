package cosmos

import (
	"encoding/json"
	"fmt"
	"strings"
)

// InitScript returns what Init does as commands for az, and the rights of a worker.
func (l *Ledger) InitScript() string {
	account, _, _ := strings.Cut(l.address.host, ".")
	index, _ := json.Marshal(indexing())
	container := func(name, offer string) string {
		return fmt.Sprintf("az cosmosdb sql container create --account-name %s --resource-group G --database-name %s --name %s%s \\\n"+
			"  --partition-key-path %s --partition-key-version 2 --idx '%s'\n", account, l.address.database, name, offer, partitionPath, index)
	}
	role := func(name string, more ...string) string {
		actions := []string{"containers/executeQuery", "containers/items/create", "containers/items/read", "containers/items/delete"}
		text := "Microsoft.DocumentDB/databaseAccounts/readMetadata"
		for _, a := range append(actions, more...) {
			text += `", "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/` + a
		}
		scope := "/dbs/" + l.address.database + "/colls/" + name
		return fmt.Sprintf("az cosmosdb sql role definition create --account-name %[1]s --resource-group G --body '{\"RoleName\": \"%[2]s worker\", \"Type\": \"CustomRole\",\n"+
			"  \"AssignableScopes\": [\"%[3]s\"], \"Permissions\": [{\"DataActions\": [\"%[4]s\"]}]}'\n"+
			"az cosmosdb sql role assignment create --account-name %[1]s --resource-group G --role-definition-name '%[2]s worker' --principal-id ID --scope %[3]s\n", account, name, scope, text)
	}
	roster := l.address.container + rosterSuffix
	return "# for a shell with az; put the resource group for G\n" +
		fmt.Sprintf("az cosmosdb sql database create --account-name %s --resource-group G --name %s\n", account, l.address.database) +
		container(l.address.container, l.throughput()) + container(roster, "") +
		"# The rights of a worker without a key: put its identity for ID.\n" + role(l.address.container) + role(roster, "containers/items/upsert")
}

// throughput is that of the ledger's container, as options of az.
func (l *Ledger) throughput() string {
	if l.offer == nil {
		return ""
	}
	if n, ok := l.offer.ManualThroughput(); ok {
		return fmt.Sprintf(" --throughput %d", n)
	}
	n, _ := l.offer.AutoscaleMaxThroughput()
	return fmt.Sprintf(" --max-throughput %d", n)
}
