package storetest

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// orders is the text of so many pauses, the last of which has a reason.
func orders(count int, why string) string {
	one := `{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}`
	last := strings.TrimSuffix(one, "}") + fmt.Sprintf(`,"why":%q}`, why)
	return "[" + strings.Repeat(one+",", count-1) + last + "]"
}

// largestOrders have as many bytes as a record may: quotes take the most room where a store
// keeps them within another text.
var largestOrders = func() string {
	quoted := strings.Repeat(`\"`, store.MaxOrderText)
	one := `{"kind":"prefer","target":"` + quoted + `","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z","by":"` + quoted + `"}`
	text := "[" + one + `,{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z","by":"` + quoted + `"`
	return text + strings.Repeat(" ", store.MaxOrders-len(text)-2) + "}]"
}()

// unfitOrders are texts that no record may have as its orders.
var unfitOrders = []string{
	orders(store.MaxOrderCount+1, ""),
	orders(1, strings.Repeat("w", store.MaxOrderText+1)),
	orders(1, "two\nlines"),
	orders(1, "") + strings.Repeat(" ", store.MaxOrders),
	"[]",
	"pause",
	`[{"kind":"pause","until":"2026-03-02T02:00:00.000Z"}]`,
	`[{"kind":"","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}]`,
}
