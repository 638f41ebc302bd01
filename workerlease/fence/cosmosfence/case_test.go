package cosmosfence_test

import (
	"errors"
	"testing"

	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/cosmosfence"
)

// Names of properties differ by case, too: the item has a property Fence of its own.
func TestAPropertyOfAnotherCaseIsNoFence(t *testing.T) {
	for name, value := range map[string]string{"text": `"garden"`, "number": "1"} {
		t.Run(name, func(t *testing.T) {
			c, ctx := container(t), t.Context()
			body := `{"id": "a", "pk": "p", "fence": 5, "Fence": ` + value + `}`
			if _, err := c.CreateItem(ctx, key, []byte(body), nil); err != nil {
				t.Fatal(err)
			}
			keep := func(old cosmosfence.Item) (cosmosfence.Item, error) { return old, nil }
			var stale *fence.StaleError
			if err := cosmosfence.Update(ctx, c, key, "a", 3, keep); !errors.As(err, &stale) || stale.Newest != 5 {
				t.Errorf("Update() with 3 = %v, want that it is stale since 5", err)
			}
			if err := cosmosfence.Update(ctx, c, key, "a", 6, keep); err != nil {
				t.Errorf("Update() with 6 = %v", err)
			}
		})
	}
}
