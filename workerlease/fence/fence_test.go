package fence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/workerlease/fence"
)

func ExampleStaleError() {
	err := fmt.Errorf("saving the invoice: %w", fence.Compare("invoices", 1, 2))
	if errors.Is(err, fence.ErrStale) {
		fmt.Println(err)
	}
	// Output: saving the invoice: fence "invoices": the token 1 is stale, since 2 has been seen
}

func TestCompare(t *testing.T) {
	for _, newest := range []int64{0, 1, 2} {
		if err := fence.Compare("a", 2, newest); err != nil {
			t.Errorf("Compare(2, %d) = %v", newest, err)
		}
	}
	var stale *fence.StaleError
	if err := fence.Compare("a", 2, 3); !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "a", Token: 2, Newest: 3}) {
		t.Errorf("Compare(2, 3) = %v", err)
	}
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("a", fence.MaxName)
	for _, test := range []struct {
		name  string
		token int64
		valid bool
	}{{"a", 1, true}, {long, 1, true}, {long + "a", 1, false}, {"", 1, false}, {"a", 0, false}, {"a", -1, false}} {
		if err := fence.Validate(test.name, test.token); (err == nil) != test.valid {
			t.Errorf("Validate(%.10q, %d) = %v", test.name, test.token, err)
		}
	}
}
