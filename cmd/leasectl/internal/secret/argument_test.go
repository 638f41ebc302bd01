package secret

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A flag that is gone is answered by what has taken its place.
func TestAFlagThatIsGoneIsAnswered(t *testing.T) {
	for name, want := range map[string]string{"join-mid-slot": "--wait-for-boundary", "join": "unknown flag: --join"} {
		err := InFlags(pflag.NewFlagSet("run", pflag.ContinueOnError).Parse([]string{"--" + name}))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("--%s: %v, want %q", name, err, want)
		}
	}
}

func TestAnArgumentIsShownUpToWhatMayBeASecret(t *testing.T) {
	for argument, want := range map[string]string{
		"mongodb:/jane:pw@h":         "mongodb:/…",
		"mongodb://jane:pw@h":        "mongodb://…",
		"mongodb+srv://jane:pw@h":    "mongodb+srv://…",
		"mongodb//jane:pw@h":         "mongodb//…",
		"mongodb/jane:pw@h":          "…",
		"jane:pw@h":                  "…",
		"COSMOS_KEY=pw==":            "COSMOS_KEY=…",
		"abc=":                       "…",
		"abc==":                      "…",
		"--store=mongodb:/jane:pw@h": "--store=…",
		"AccountEndpoint=https://h;AccountKey=pw": "AccountEndpoint=…",
		"aGs3+K/y3Q==": "…",
		"pw@h":         "…",
		"a pw":         "…",
		"C8y6yDjf5R0ob0N8A7Cgv30VRDJIWEHLMQDU5DE2nQ9nDuVTqobD4b8mGG": "…",
		"x":            "x",
		"":             "…",
		"/usr/bin/env": "/usr/bin/env",
		"job-täglich":  "job-täglich",
		"--verbose":    "--verbose",
	} {
		if got := Shown(argument); got != want {
			t.Errorf("Shown(%q) = %q, want %q", argument, got, want)
		}
	}
}
