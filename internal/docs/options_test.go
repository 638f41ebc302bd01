package docs

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// docs/options.md lists all options, and no others.
func TestOptionsAreListed(t *testing.T) {
	p := read(t, "docs/options.md")
	for header, of := range map[string]reflect.Type{
		"| Option | leasectl run | Default | Meaning and bounds |": reflect.TypeFor[workerlease.Options](),
		"| Option | Default | Meaning |":                           reflect.TypeFor[workerlease.ClientOptions](),
	} {
		want := fields(of, "")
		var got []string
		for _, row := range p.table(t, header) {
			if name := strings.Trim(row[0], "`"); name != "" { // else a flag alone
				got = append(got, name)
			}
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("docs/options.md doesn't list %s of %v", name, of)
			}
		}
		for _, name := range got {
			if !slices.Contains(want, name) {
				t.Errorf("docs/options.md lists %s, which %v doesn't have", name, of)
			}
		}
	}
}

// fields are the names of a struct's fields, those of the module's own structs in it as
// well.
func fields(of reflect.Type, prefix string) (names []string) {
	for _, f := range reflect.VisibleFields(of) {
		names = append(names, prefix+f.Name)
		below := f.Type
		if below.Kind() == reflect.Pointer {
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct && strings.HasSuffix(below.PkgPath(), "/workerlease") {
			names = append(names, fields(below, prefix+f.Name+".")...)
		}
	}
	return names
}

// Each flag of leasectl run that isn't about the process alone belongs to an option.
func TestFlagsOfRunAreListed(t *testing.T) {
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	var listed []string
	for _, row := range read(t, "docs/options.md").table(t, "| Option | leasectl run | Default | Meaning and bounds |") {
		listed = append(listed, flag.FindAllString(row[1], -1)...)
	}
	_, flags, _ := strings.Cut(helpOf(t, "run"), "\nFlags:\n")
	flags, _, _ = strings.Cut(flags, "\nGlobal Flags:\n")
	process := []string{"--help", "--verbose", "--log-format", "--log-level", "--stop-grace", "--once", "--timeout", "--conflict-exit-code", "--listen", "--on-failure", "--on-given-up", "--on-missed", "--on-success", "--output"}
	var offered []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(flags, -1) {
		offered = append(offered, m[1])
		if !slices.Contains(listed, m[1]) && !slices.Contains(process, m[1]) {
			t.Errorf("docs/options.md doesn't list %s of leasectl run", m[1])
		}
	}
	for _, name := range listed {
		if !slices.Contains(offered, name) {
			t.Errorf("docs/options.md lists %s, which leasectl run doesn't have", name)
		}
	}
}

// The defaults that docs/options.md states are those of slots of 5 min.
func TestDefaultsAreAsListed(t *testing.T) {
	timing, err := workerlease.Options{WorkerType: "t"}.Timing()
	must(t, err)
	o := timing.Options
	slot := o.Schedule.Next(time.Time{}.AddDate(2000, 0, 0))
	minute := func(d time.Duration) string { return fmt.Sprintf("%g min", d.Minutes()) }
	milliseconds := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	for name, want := range map[string]string{
		"LeaseInterval": minute(slot.Length()),
		"Priority":      fmt.Sprint(o.Priority),
		"TieBreak":      fmt.Sprintf("`%s`", strings.ToUpper(o.TieBreak.String()[:1])+o.TieBreak.String()[1:]),
		"Margin":        milliseconds(o.Margin),
		"Retention":     fmt.Sprintf("%g h", o.Retention.Hours()),
		"MinBackoff":    milliseconds(o.MinBackoff),
		"MaxBackoff":    fmt.Sprintf("%g s", o.MaxBackoff.Seconds()),
		"Lead":          fmt.Sprintf("%g s", timing.Lead(slot).Seconds()),
	} {
		for _, row := range read(t, "docs/options.md").table(t, "| Option | leasectl run | Default | Meaning and bounds |") {
			if row[0] == "`"+name+"`" && !strings.Contains(row[2], want) {
				t.Errorf("docs/options.md: the default of %s is %q, want %q in it", name, row[2], want)
			}
		}
	}
}
