package storetest

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
)

// Document is the JSON text of a document that the suite plants, for stores that keep such: the fields
// that Plant or PlantPresence is given, and those of the key unless they are among them. Times are
// RFC 3339 with milliseconds, as those of [store.Format], and labels are a list of objects with name and
// value.
func Document(t testing.TB, key, fields map[string]any) []byte {
	t.Helper()
	all := maps.Clone(key)
	for name, v := range fields {
		switch v := v.(type) {
		case time.Time:
			all[name] = store.Format(v)
		case map[string]any:
			all[name] = v
			if name == "labels" {
				all[name] = labels(v)
			}
		default:
			all[name] = v
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func labels(m map[string]any) []map[string]any {
	list := []map[string]any{}
	for name, value := range m {
		list = append(list, map[string]any{"name": name, "value": value})
	}
	return list
}

// leastDocument is the least MaxDocument in bytes: the largest valid presence is about as large, and the
// suite plants texts beyond all limits of fields besides.
const leastDocument = 256 << 10

// long stands for a text of so many bytes in a planted document, far beyond what its field may have.
type long int

// fit puts texts in place of each long, which leave room for two of them in a document of the store. They have a
// sixteenth of the bytes under the race detector: it takes many times as long to decode them there, and finds
// no more in the longer text.
func (b *bench) fit(v any) any {
	switch v := v.(type) {
	case long:
		n := int(v)
		if race.Enabled {
			n /= 16
		}
		if b.MaxDocument > 0 {
			n = min(n, (b.MaxDocument-8<<10)/2)
		}
		return strings.Repeat("🦫", n/len("🦫"))
	case map[string]any:
		fitting := map[string]any{}
		for name, v := range v {
			fitting[name] = b.fit(v)
		}
		return fitting
	default:
		return v
	}
}
