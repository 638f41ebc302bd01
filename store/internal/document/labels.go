package document

import (
	"maps"
	"slices"
)

// Label is one of a presence's Labels. In a document they are a list: not every server takes any text as the
// name of a field, or gives it back.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// List is labels in the order of their names; nil if there are none.
func List(labels map[string]string) (list []Label) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, Label{name, labels[name]})
	}
	return list
}

// Map is the labels of a list, of which the last counts if a name is there twice; nil if there are none.
func Map(list []Label) map[string]string {
	if len(list) == 0 {
		return nil
	}
	labels := map[string]string{}
	for _, l := range list {
		labels[l.Name] = l.Value
	}
	return labels
}
