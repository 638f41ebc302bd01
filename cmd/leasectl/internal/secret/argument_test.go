package secret

import "testing"

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
