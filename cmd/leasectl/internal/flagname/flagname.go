// Package flagname names the options of package workerlease by their flags.
package flagname

import (
	"regexp"
	"strings"
)

// flags are the flags of the fields of workerlease.Options.
var flags = map[string]string{
	"WorkerType":        "--worker-type",
	"InstanceID":        "--instance-id",
	"Group":             "--group",
	"Priority":          "--priority",
	"TieBreak":          "--tie-break",
	"LeaseInterval":     "--every",
	"Schedule":          "--every or --cron",
	"FailoverWithin":    "--failover-within",
	"Continuous":        "--continuous",
	"NoFailback":        "--no-failback",
	"Job":               "--once-per-slot",
	"Job.StartWithin":   "--start-within",
	"Job.Overrun":       "--overrun",
	"Job.Timeout":       "--run-timeout",
	"Job.CatchUp":       "--catch-up",
	"Job.CatchUpWithin": "--catch-up-within",
	"Job.MaxAttempts":   "--max-attempts",
	"Retention":         "--retention",
	"DrainTimeout":      "--drain-timeout",
	"Job.MinRetry":      "--min-retry",
	"WaitForBoundary":   "--wait-for-boundary",
	"Lead":              "--lead",
	"Step":              "--step",
	"Margin":            "--margin",
	"Labels":            "--label",
}

// words are quoted texts, which are values of users, and words that may be fields.
var words = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[A-Z][A-Za-z]*(?:\.[A-Z][A-Za-z]*)?`)

// In replaces the fields that a text of package workerlease names by their flags.
func In(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		if flag, ok := flags[word]; ok {
			return flag
		}
		return word
	})
}

// orZero is how package workerlease says that the zero value of a field stands for its
// default. A flag with such bounds is left out instead.
var orZero = regexp.MustCompile(`must be 0 \((?:none|default)\),? or `)

// Problem is the text of an option error for users of the flags, such as
// "--margin is 19s: must be at most 15s".
func Problem(err error) string {
	field, rest, _ := strings.Cut(err.Error(), ": ")
	return In(field + " " + orZero.ReplaceAllLiteralString(rest, "must be "))
}
