package versions

import (
	"crypto/rand"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

// shared is a store that both versions open. Where the time is known to a second or two, slots must be long.
type shared struct {
	name  string
	slow  bool
	fresh func(t *testing.T) (uri string, env []string) // of a ledger that isn't made yet
}

var stores = []shared{
	{"SQLite", false, func(t *testing.T) (string, []string) {
		return "sqlite:" + filepath.Join(t.TempDir(), "leases.db"), nil
	}},
	{"PostgreSQL", false, func(t *testing.T) (string, []string) { return postgrespeer.Database(t), nil }},
	{"MySQL", false, func(t *testing.T) (string, []string) {
		login, place, _ := strings.Cut(mysqlpeer.Database(t), "@tcp(") // USER@tcp(HOST:PORT)/NAME
		host, name, _ := strings.Cut(place, ")/")
		name, _, _ = strings.Cut(name, "?")
		return "mysql://" + login + "@" + host + "/" + name, nil
	}},
	{"MongoDB", false, func(t *testing.T) (string, []string) {
		before, after, _ := strings.Cut(mongopeer.URI(t), "/?")
		return strings.TrimSuffix(before, "/") + "/" + strings.ToLower(rand.Text()) + "?" + after, nil
	}},
	{"Redis", false, func(t *testing.T) (string, []string) {
		return redispeer.Shared(t) + "?unsafeNoPersistence=true&prefix=" + strings.ToLower(rand.Text()), nil
	}},
	{"Cosmos DB", true, func(t *testing.T) (string, []string) {
		uri := strings.Replace(cosmospeer.Start(t, cosmospeer.Options{}).URI(), "/?", "/versions/leases?", 1)
		return uri, []string{"COSMOS_KEY=" + cosmospeer.Key()}
	}},
	{"S3", true, func(t *testing.T) (string, []string) {
		uri := "s3://" + strings.ToLower(rand.Text()) + "/jobs?pathStyle=true&endpoint=" + url.QueryEscape(s3peer.Shared(t))
		return uri, []string{"AWS_ACCESS_KEY_ID=" + s3peer.ID, "AWS_SECRET_ACCESS_KEY=" + s3peer.Secret}
	}},
	{"Azure Blob Storage", true, func(t *testing.T) (string, []string) {
		uri := "azblob://" + azuritepeer.Account + "/" + strings.ToLower(rand.Text()) + "/jobs?endpoint=" + url.QueryEscape(azuritepeer.Shared(t)+"/"+azuritepeer.Account)
		return uri, []string{"AZURE_STORAGE_KEY=" + azuritepeer.Key}
	}},
}
