package storeuri_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

func TestTheParametersOfAMongoDBURIReachTheLedger(t *testing.T) {
	for uri, want := range map[string]string{
		"mongodb://127.0.0.1:1/jobs?serverSkew=150ms&unsafeUnverified=true": "",
		"mongodb://127.0.0.1:1/jobs?serverSkew=soon":                        `parameter serverSkew is "soon": it must be a duration above 0, at most 1h0m0s, such as 500ms`,
		"mongodb://127.0.0.1:1/jobs?unsafeUnverified=perhaps":               `parameter unsafeUnverified is "perhaps": it must be true or false`,
		"mongodb://127.0.0.1:1/jobs?serverSkewMS=5":                         "did you mean serverSkew",
	} {
		target, err := parse(uri, "")
		if err != nil {
			t.Errorf("target of %s = %v", uri, err)
			continue
		}
		l, err := target.Open(t.Context(), true)
		if want == "" {
			if err != nil {
				t.Errorf("open of %s = %v", uri, err)
				continue
			}
			_ = l.Close(t.Context())
			continue
		}
		f, ok := errors.AsType[*exit.Error](err)
		if !ok || f.Code != exit.Usage || !strings.Contains(f.Error(), want) {
			t.Errorf("open of %s = %v, want a mistake in the usage: %s", uri, err, want)
		}
	}
}
