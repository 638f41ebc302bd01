package app

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/estimate"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
)

func TestPlanShowsTablesAndJSON(t *testing.T) {
	for name, args := range map[string][]string{
		"plan.cosmos":   {"--store", "cosmos", "--every", "5m"},
		"plan.mongo":    {"--store", "mongo", "--cron", "0 2 * * *", "--zone", "Europe/Berlin", "--workers", "40"},
		"plan.units":    {"--store", "mongodb://u:hunter2@acct.mongo.cosmos.azure.com:10255/d?ssl=true", "--every", "5m"},
		"plan.failover": {"--store", "cosmos://acct/db/c", "--every", "5m", "--failover-within", "20s", "--consistency", "session"},
		"plan.s3":       {"--store", "s3://bucket/folder", "--every", "5m"},
		"plan.azblob":   {"--store", "azblob", "--every", "10s", "--workers", "5"},
		"plan.kube":     {"--store", "k8s:jobs", "--every", "1h", "--failover-within", "5m"},
		"plan.s3.json":  {"--store", "s3", "--every", "5m", "--output", "json"},
		"plan.json":     {"--store", "mongodb://u:hunter2@h/d", "--every", "5m", "--output", "json"},
	} {
		got := leasectl(t, nil, append([]string{"plan"}, args...)...)
		if got.code != exit.OK || got.stderr != "" {
			t.Errorf("leasectl plan %q = %d, %q", args, got.code, got.stderr)
		}
		golden.Compare(t, name, got.stdout)
		for line := range strings.Lines(got.stdout) {
			if n := utf8.RuneCountInString(line); n > 81 && !strings.HasSuffix(name, "json") && !strings.Contains(line, "https://") {
				t.Errorf("%s: line %q has %d columns, want at most 80", name, line, n-1)
			}
		}
	}
}

// docs/stores/mongodb.md says what a replica set of three members takes.
func TestThePlanForMongoDBIsThatOfTheDocumentation(t *testing.T) {
	var p estimate.Report
	got := leasectl(t, nil, "plan", "--store", "mongo", "--every", "5m", "--output", "json")
	if err := json.Unmarshal([]byte(got.stdout), &p); err != nil || len(p.PerDay) == 0 {
		t.Fatalf("leasectl plan = %+v, %v", got, err)
	}
	page, err := os.ReadFile("../../../docs/stores/mongodb.md")
	must(t, err)
	daily := float64(p.PerDay[0].Requests)
	// Of the three hellos for each of the three workers' stamps, one goes to the primary.
	primary := daily - 2*3*float64(p.SlotsPerDay)
	const day = 24 * 60 * 60
	want := fmt.Sprintf("send %.0f commands per slot (`leasectl plan --store mongo --every 5m`: %d,%03d a day). So a thousand such types need %.0f commands a second, of which the primary of three members gets %.0f.",
		daily/float64(p.SlotsPerDay), int(daily)/1000, int(daily)%1000, 1000*daily/day, 1000*primary/day)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/stores/mongodb.md doesn't say %q, as the plan does", want)
	}
}

func TestThePlansStoreMayBeNamedByTheEnvironment(t *testing.T) {
	for env, want := range map[string]string{
		"cosmos://acct/db/c": estimate.Cosmos, "cosmos": estimate.Cosmos, "mongo": estimate.Mongo, "mongodb://h/d": estimate.Mongo, "mongodb+srv://h/d": estimate.Mongo,
		"s3": estimate.S3, "s3://bucket/folder?region=eu-central-1": estimate.S3, "azblob://account/container": estimate.AzureBlob, "kubernetes": estimate.Kubernetes, "k8s:": estimate.Kubernetes,
	} {
		got := leasectl(t, []string{storeuri.Variable + "=" + env}, "plan", "--every", "1m", "--output", "json")
		var p estimate.Report
		if err := json.Unmarshal([]byte(got.stdout), &p); err != nil || p.Store != want {
			t.Errorf("leasectl plan with %s = %+v, %v, want %s", env, got, err, want)
		}
	}
}

func TestOnlyAnAccountThatBillsRequestUnitsShowsThem(t *testing.T) {
	for uri, want := range map[string]bool{
		"cosmos": true, "mongo": false, "mongodb://h/d": false, "mongodb+srv://u:p@cluster.mongocluster.cosmos.azure.com/?tls=true": false,
		"mongodb://acct.mongo.cosmos.azure.com:10255/": true, "mongodb://ACCT.Mongo.Cosmos.Azure.Com": true, "mongodb://u:p%40@acct.documents.azure.com:10255?ssl=true": true,
		"mongodb://u.mongo.cosmos.azure.com:p@h/acct.mongo.cosmos.azure.com": false,
	} {
		got := leasectl(t, nil, "plan", "--store", uri, "--every", "5m")
		if has := strings.Contains(got.stdout, "RU/S"); has != want || got.code != exit.OK {
			t.Errorf("leasectl plan --store %s = %+v, request units: %t, want %t", uri, got, has, want)
		}
	}
}

func TestThePlansSlotsMayBeCalledAnInterval(t *testing.T) {
	every := leasectl(t, nil, "plan", "--store", "cosmos", "--every", "7m")
	if got := leasectl(t, nil, "plan", "--store", "cosmos", "--interval", "7m"); got != every || got.code != exit.OK {
		t.Errorf("leasectl plan --interval 7m = %+v, want that of --every 7m, %+v", got, every)
	}
}

func TestAPlanOfManyWorkersSaysThatThePeakIsTooHigh(t *testing.T) {
	verdict := func(args ...string) string {
		return leasectl(t, nil, append([]string{"plan", "--store", "cosmos", "--every", "5m"}, args...)...).stdout
	}
	const fits, high = "\n400 RU/s carry the peak", "\n400 RU/s don't carry the peak: have 1,300,"
	for args, want := range map[string]string{
		"--workers 1": "1 worker of one type · every 5m · ", "--workers 30": fits, "--workers 100": high, "--workers 100 --consistency session": "have 700,", "--workers 100 --step 30s --lead 5m": fits,
	} {
		if got := verdict(strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("leasectl plan %s = %s, want %q in it", args, got, want)
		}
	}
}
