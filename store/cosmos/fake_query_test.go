package cosmos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
)

// query answers the queries that this package sends.
func (f *fakeAccount) query(r *fakeRequest, of map[string]map[string]json.RawMessage, partition []string) *fakeReply {
	var q struct {
		Query      string
		Parameters []struct {
			Name  string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(r.text), &q); err != nil {
		return refusal(http.StatusBadRequest, "broken query")
	}
	timed := strings.Contains(q.Query, "GetCurrentTimestamp()")
	if timed && f.timeless {
		return refusal(http.StatusBadRequest, "unknown function")
	}
	if q.Query == "SELECT VALUE GetCurrentTimestamp()" {
		return reply(http.StatusOK, map[string]any{"Documents": []any{f.at(r).UnixMilli()}})
	}
	values := map[string]string{}
	var seen []string
	for _, p := range q.Parameters {
		var text string
		if p.Name == "@seen" {
			_ = json.Unmarshal(p.Value, &seen)
		} else {
			_ = json.Unmarshal(p.Value, &text)
		}
		values[p.Name] = text
	}
	all := []map[string]json.RawMessage{}
	for name, items := range of {
		if len(partition) == 1 && name != partition[0] || slices.Contains(seen, name) {
			continue
		}
		for id, raw := range items {
			if values["@below"] != "" && (id < values["@from"] || id >= values["@below"]) {
				continue
			}
			item := map[string]json.RawMessage{}
			_ = json.Unmarshal(raw, &item)
			delete(item, "_ts")
			if timed {
				item[fieldTime], _ = json.Marshal(f.at(r).UnixMilli())
			}
			all = append(all, item)
		}
	}
	slices.SortFunc(all, func(a, b map[string]json.RawMessage) int {
		order := bytes.Compare(a["id"], b["id"])
		if strings.HasSuffix(q.Query, " DESC") {
			return -order
		}
		return order
	})
	return f.page(r, q.Query, all)
}

// page is what TOP and the page's size leave of a query's items.
func (f *fakeAccount) page(r *fakeRequest, query string, all []map[string]json.RawMessage) *fakeReply {
	limit, size, from := math.MaxInt, 100, 0
	_, _ = fmt.Sscanf(query, "SELECT TOP %d ", &limit)
	_, _ = fmt.Sscan(r.Header.Get("X-Ms-Max-Item-Count"), &size)
	_, _ = fmt.Sscan(r.Header.Get("X-Ms-Continuation"), &from)
	all = all[:min(limit, len(all))]
	end := min(from+size, len(all))
	out := reply(http.StatusOK, map[string]any{"Documents": all[min(from, end):end]})
	if end < len(all) {
		out.headers = []string{"X-Ms-Continuation", fmt.Sprint(end)}
	}
	return out
}
