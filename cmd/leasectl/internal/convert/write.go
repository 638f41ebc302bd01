package convert

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// object is a map whose keys have an order. A value is a string, an int, an object, [specs], or a list of strings.
type object []entry

type entry struct {
	key   string
	value any
}

// specs are cron specs. All of them are quoted, as those with a star must be.
type specs []string

// get is the value of a key, nil if there is none.
func (o object) get(key string) any {
	for _, e := range o {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// set gives a key a value, in place of the one that it has.
func (o *object) set(key string, value any) {
	if i := slices.Index(o.keys(), key); i >= 0 {
		(*o)[i].value = value
		return
	}
	*o = append(*o, entry{key, value})
}

func (o *object) remove(key string) {
	*o = slices.DeleteFunc(*o, func(e entry) bool { return e.key == key })
}

func (o object) keys() (keys []string) {
	for _, e := range o {
		keys = append(keys, e.key)
	}
	return keys
}

// written is a file and its defaults as YAML.
func written(f *file, defaults object) ([]byte, error) {
	jobs := &yaml.Node{Kind: yaml.SequenceNode}
	for _, j := range f.jobs {
		n := node(j.object)
		n.HeadComment = comment(j.comments)
		jobs.Content = append(jobs.Content, n)
	}
	var root object
	if len(defaults) > 0 {
		root.set("defaults", defaults)
	}
	all := node(root)
	all.HeadComment = comment(f.about)
	all.Content = append(all.Content, node("jobs"), jobs)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(all); err != nil {
		return nil, err
	}
	return shown(b.String()), e.Close()
}

// node is a value as YAML.
func node(value any) *yaml.Node {
	n := &yaml.Node{}
	switch v := value.(type) {
	case string:
		n.SetString(v)
		if strings.ContainsFunc(v, hidden) || strings.Trim(v, " \n") != strings.TrimSuffix(v, "\n") {
			n.Style = yaml.DoubleQuotedStyle
		}
	case int:
		n.Kind, n.Value = yaml.ScalarNode, strconv.Itoa(v)
	case object:
		n.Kind = yaml.MappingNode
		for _, e := range v {
			n.Content = append(n.Content, node(e.key), node(e.value))
		}
	case []string:
		n.Kind, n.Style = yaml.SequenceNode, yaml.FlowStyle
		for _, text := range v {
			n.Content = append(n.Content, node(text))
		}
	case specs:
		n = node([]string(v))
		for _, spec := range n.Content {
			spec.Style = yaml.SingleQuotedStyle
		}
		if len(v) == 1 {
			n = n.Content[0]
		}
	}
	return n
}

// hidden reports that a character must be escaped, within quotes: leasectl writes no such character.
func hidden(r rune) bool { return r != '\n' && display.Hidden(r) }

// shown is a text with an escape for each character that is hidden. Those of Go are also YAML's.
func shown(text string) []byte {
	var b bytes.Buffer
	for _, r := range text {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// comment is a comment of a few lines.
func comment(lines []string) string {
	var all []string
	for _, l := range lines {
		all = append(all, "# "+display.Line(l))
	}
	return strings.Join(all, "\n")
}
