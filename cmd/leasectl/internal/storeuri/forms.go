package storeuri

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// forms are those of the stores that each leasectl opens, but for one built with the tag lite, as messages show them. The
// help of leasectl has them whole.
var forms = []string{"sqlite:PATH", "mongodb://…", "mongodb+srv://…", "cosmos://…", "postgres://…", "mysql://…", "redis://…", "rediss://…", "s3://…", "azblob://…"}

// own are the schemes that each leasectl registers.
var own = []string{"azblob", "cosmos", "mariadb", "mongodb", "mongodb+srv", "mysql", "postgres", "postgresql", "redis", "redis+sentinel", "rediss", "rediss+sentinel", "s3", "sqlite"}

// Forms are the forms in which a store is named.
func Forms() string {
	all := slices.DeleteFunc(slices.Clone(forms), func(form string) bool {
		_, there := store.DriverOf(form)
		return !there
	})
	for _, scheme := range further() {
		d, _ := store.DriverOf(scheme + ":")
		form := scheme + ":…"
		if strings.HasPrefix(d.Form, scheme+"://") {
			form = scheme + "://…"
		}
		all = append(all, form)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + ", or " + all[last]
}

// further are the schemes of the stores that this leasectl opens besides those that each one does.
func further() []string {
	return slices.DeleteFunc(store.Schemes(), func(scheme string) bool { return slices.Contains(own, scheme) })
}

// FurtherForms are the whole forms of those, a line each, with the variables that have their passwords. Schemes of one form
// share a line.
func FurtherForms() (lines []string) {
	var seen []string
	for _, scheme := range further() {
		d, _ := store.DriverOf(scheme + ":")
		rest, ok := strings.CutPrefix(d.Form, scheme)
		if i := slices.Index(seen, rest); ok && i >= 0 {
			lines[i] += ", or " + scheme + "://…"
			continue
		}
		seen = append(seen, rest)
		lines = append(lines, d.Form)
		if d.Form == "" {
			lines[len(lines)-1] = scheme + ":…"
		}
	}
	for i, line := range lines {
		scheme, _, _ := strings.Cut(line, ":")
		d, _ := store.DriverOf(scheme + ":")
		var variables []string
		for _, s := range d.Secrets {
			variables = append(variables, s.Variable)
		}
		if len(variables) > 0 {
			lines[i] += ", with " + strings.Join(variables, ", ")
		}
	}
	return lines
}

// absent are the stores that no plain leasectl has, by their schemes: they are modules of their own, or untested and a
// matter of a build tag. A leasectl that was built with them has their drivers.
var absent = map[string]AbsentError{
	"etcd":      ofModule("etcd", "store/etcd"),
	"etcds":     ofModule("etcd", "store/etcd"),
	"k8s":       ofModule("Kubernetes", "store/kubernetes"),
	"nats":      ofModule("NATS", "store/nats"),
	"cosmos":    ofCloud("Cosmos DB"),
	"s3":        ofCloud("S3"),
	"azblob":    ofCloud("Azure Blob Storage"),
	"sqlserver": {"SQL Server, which is untested", "build it with the tag sqlserver", "go install -tags sqlserver github.com/slotlease/slotlease/cmd/leasectl@latest"},
}

// ofModule is a store that has a leasectl in its own module. go install refuses a module by its version whose go.mod has
// a replace directive, as these have.
func ofModule(store, folder string) AbsentError {
	return AbsentError{store, "build the one in " + folder + "/leasectl", "in a clone of slotlease: cd " + folder + " && go install ./leasectl"}
}

// ofCloud is a store whose SDK a leasectl with the tag lite doesn't link.
func ofCloud(store string) AbsentError {
	return AbsentError{store, "build it without the tag lite", "go install github.com/slotlease/slotlease/cmd/leasectl@latest"}
}

// AbsentError says that a leasectl was built without a store, and how to get one that has it.
type AbsentError struct{ store, remedy, try string }

func (e *AbsentError) Error() string {
	return fmt.Sprintf("this leasectl was built without the store of %s: %s", e.store, e.remedy)
}

// Try is the command that builds one with the store.
func (e *AbsentError) Try() string { return e.try }
