package storeuri

import (
	"testing"

	"github.com/slotlease/slotlease/store/cosmos"
)

func TestAKeyMayEndWithANewline(t *testing.T) {
	const key = "a2V5a2V5a2V5" // not one of a real account
	got, err := Parse("cosmos://acct", func(name string) string { return map[string]string{cosmos.KeyVariable: key + "\n"}[name] })
	if err != nil || got.key != key {
		t.Errorf("the key is %q, %v, want it without the newline", got.key, err)
	}
}
