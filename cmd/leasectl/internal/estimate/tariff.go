package estimate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of stores that are asked by several kinds of requests.
const (
	S3         = "s3"
	AzureBlob  = "azblob"
	Kubernetes = "kubernetes"
)

// mostKinds is how many kinds of requests a store has at most.
const mostKinds = 6

// perKind are numbers of requests, in the order of a tariff's kinds.
type perKind [mostKinds]float64

func (k perKind) plus(l perKind) perKind {
	for i := range k {
		k[i] += l[i]
	}
	return k
}

func (k perKind) times(n float64) perKind {
	for i := range k {
		k[i] *= n
	}
	return k
}

// tariff is by which kinds of requests a store is asked, and what it bills for them.
type tariff struct {
	kinds []string
	// dollars is the price of per requests of each kind; nil: none is billed.
	dollars []float64
	per     float64
	// gigabyte is what it costs to keep one, of 10^9 bytes, for a month.
	gigabyte float64
	// region and date are those of the prices, source is where they stand, and basis is what they rest on.
	region, date, source, basis string
}

// The kinds of requests, by their positions in a tariff.
const (
	putting = iota
	listing
	getting
	dating
	deleting
	updating // in Kubernetes alone: to the others a presence is put as a record is
)

// tariffs are the prices that the documentation of the stores quotes. Data that leaves the region is not counted. Neither
// Amazon nor Microsoft bills deletions. No price was read where it is charged by: each says what it rests on.
var tariffs = map[string]tariff{
	S3: {
		kinds: []string{"put", "list", "get", "head", "delete"}, per: 1000,
		dollars: []float64{0.005, 0.005, 0.0004, 0.0004, 0}, gigabyte: 0.023,
		region: "us-east-1", date: "2026-09-28", source: "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonS3/current/us-east-1/index.json",
		basis: "Unconfirmed: Amazon's list of that day as others quote it, for requests and for storage.",
	},
	AzureBlob: {
		kinds: []string{"write", "list", "read", "other", "delete"}, per: 10_000,
		dollars: []float64{0.055, 0.055, 0.0044, 0.0044, 0}, gigabyte: 0.0208,
		region: "a sample, of the hot tier", date: "2024-07-26", source: "https://learn.microsoft.com/azure/storage/blobs/blob-storage-estimate-costs",
		basis: "Fictitious, as Microsoft says of them, for requests and for storage: no region has to have them.",
	},
	Kubernetes: {kinds: []string{"create", "list", "get", "version", "delete", "update"}},
}

// gigabytePrice is the name of the price of storage among those of requests.
const gigabytePrice = "gb-month"

// PriceNames are the names of the prices of a kind of store, in the order in which it shows them; none if it bills no
// requests by kinds.
func PriceNames(store string) []string {
	t := tariffs[store]
	if t.dollars == nil {
		return nil
	}
	return append(slices.Clone(t.kinds), gigabytePrice)
}

// KindNames are the kinds of requests by which a kind of store is asked; none if they are not told apart.
func KindNames(store string) []string { return tariffs[store].kinds }

// Floors are the least useful FailoverWithin of stores, by default: they know the time too poorly for less.
var Floors = map[string]time.Duration{S3: 8 * time.Second, AzureBlob: 8 * time.Second, Kubernetes: 4 * time.Second}

// shortest are the least slots of stores in which each is won: of shorter ones many are over before anybody can be sure that
// they have begun.
var shortest = map[string]time.Duration{S3: 4 * time.Second, AzureBlob: 4 * time.Second, Kubernetes: 2 * time.Second}

// with are the same requests, some of them at other prices.
func (t tariff) with(prices map[string]float64) tariff {
	t.dollars = slices.Clone(t.dollars)
	for name, dollars := range prices {
		if i := slices.Index(t.kinds, name); i >= 0 {
			t.dollars[i] = dollars
		} else if name == gigabytePrice {
			t.gigabyte = dollars
		}
	}
	return t
}

// bill is what requests cost, in dollars.
func (t tariff) bill(requests perKind) (dollars float64) {
	for i, price := range t.dollars {
		dollars += requests[i] * price / t.per
	}
	return dollars
}

// priced reports that the store bills requests by their kinds.
func (t tariff) priced() bool { return t.dollars != nil }

// named are the requests that there are, by their kinds; nil if there are no kinds.
func (t tariff) named(requests perKind) map[string]float64 {
	if t.kinds == nil {
		return nil
	}
	all := map[string]float64{}
	for i, kind := range t.kinds {
		if n := math.Round(requests[i]*1000) / 1000; n > 0 {
			all[kind] = n
		}
	}
	return all
}

// texts are the numbers of requests for a table.
func (t tariff) texts(requests perKind) (texts []string) {
	for i := range t.kinds {
		texts = append(texts, amount(requests[i]))
	}
	return texts
}

// wholes are the numbers of requests of a day for a table.
func (t tariff) wholes(requests perKind) (texts []string) {
	for i := range t.kinds {
		texts = append(texts, amount(math.Round(requests[i])))
	}
	return texts
}

// heads are the headings of both.
func (t tariff) heads() []string {
	return strings.Split(strings.ToUpper(strings.Join(t.kinds, " ")), " ")
}

// list are the prices in words.
func (t tariff) list() string {
	words := make([]string, len(t.kinds))
	for i, kind := range t.kinds {
		words[i] = kind + " $" + strconv.FormatFloat(t.dollars[i], 'f', -1, 64)
	}
	return fmt.Sprintf("%s for %s, and $%s for a GB and month", strings.Join(words, ", "), grouped(t.per), strconv.FormatFloat(t.gigabyte, 'f', -1, 64))
}

// rests is what the prices rest on that were not given; empty if all that aren't free were.
func (t tariff) rests(given map[string]float64) string {
	for i, name := range append(slices.Clone(t.kinds), gigabytePrice) {
		if _, is := given[name]; !is && (i == len(t.kinds) || t.dollars[i] > 0) {
			return t.basis
		}
	}
	return ""
}

// changed are the names of prices that were given.
func changed(prices map[string]float64) string {
	return strings.Join(slices.Sorted(maps.Keys(prices)), ", ")
}
