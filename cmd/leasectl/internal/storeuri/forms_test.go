package storeuri

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestALeasectlWithoutFurtherStoresNamesItsOwn(t *testing.T) {
	if _, ok := store.DriverOf("sqlserver://h/x"); ok {
		t.Skip("this one was built with the tag sqlserver, and lists that store as a further one")
	}
	if got := store.Schemes(); !slices.Equal(got, own) {
		t.Errorf("the schemes %q are registered, want those that the help has by hand: %q", got, own)
	}
	if got := FurtherForms(); len(got) > 0 {
		t.Errorf("FurtherForms() = %q, want none", got)
	}
	for _, form := range forms {
		if !strings.Contains(Forms(), form) {
			t.Errorf("Forms() = %q, want %s in it", Forms(), form)
		}
	}
}

func TestAStoreThatIsAbsentIsNamedWhateverElseTheURIHas(t *testing.T) {
	for scheme, want := range absent {
		if _, there := store.DriverOf(scheme + "://h/x"); there {
			continue // by the build tag
		}
		for _, uri := range []string{scheme + "://u:c4nary@h/x?password=c4nary", scheme + ":", scheme + ":c4nary"} {
			_, err := Parse(uri, func(string) string { return "" })
			_, inFile := ParseFile(uri, func(string) string { return "" })
			for _, err := range []error{err, inFile} {
				got, ok := errors.AsType[*AbsentError](err)
				if !ok || *got != want || strings.Contains(err.Error()+got.Try(), "c4nary") || strings.Contains(err.Error(), "\n") {
					t.Errorf("Parse(%s) = %v, want how to get %s in one line, and nothing of the URI", uri, err, scheme)
				}
			}
		}
	}
}

func TestTheKeysInAConnectionStringAreHidden(t *testing.T) {
	for value, hides := range map[string]string{
		"c4naryKeyOf77Azure==": "c4naryKeyOf77Azure==",
		"DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=c4naryKeyOf77Azure==;EndpointSuffix=x": "c4naryKeyOf77Azure==",
		"?sv=2024&sig=c4narySig77%3D&se=2027": "c4narySig77%3D",
	} {
		found := Secrets(func(name string) string {
			return map[string]string{"AZURE_STORAGE_CONNECTION_STRING": value}[name]
		})
		if got := found.Scrub("the key " + hides + " of acct is bad"); got != "the key *** of acct is bad" {
			t.Errorf("with %s, Scrub() = %q, want no key", value, got)
		}
	}
}
