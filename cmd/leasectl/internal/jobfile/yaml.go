package jobfile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
)

// syntaxError is how the parser names the line of a fault.
var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// lineBefore are the faults that the parser places a line too high: those of its grammar, not of its words.
var lineBefore = regexp.MustCompile(`^did not find expected (key|node content|'-' indicator|',' or|<)`)

// readYAML reads jobs.yaml.
func (r *reader) readYAML(text []byte) {
	root := r.document(text)
	if root == nil {
		return
	}
	if r.checkPlain(root); len(r.faults) > 0 {
		return
	}
	top := r.entries(root, "the file", []string{"defaults", "jobs"})
	if root.Kind != yaml.MappingNode {
		return
	}
	defaults := map[string]entry{}
	if d, ok := top["defaults"]; ok {
		defaults = r.entries(d.value, "defaults", keyNames(true))
	}
	jobs, ok := top["jobs"]
	if !ok {
		r.bad(root.Line, root.Column, `no jobs: write "jobs:", and a list of them`)
		return
	}
	if jobs.value.Kind != yaml.SequenceNode {
		r.bad(jobs.value.Line, jobs.value.Column, "jobs: must be a list, each item of which begins with \"- name: …\", not %s", kindOf(jobs.value))
		return
	}
	for _, n := range jobs.value.Content {
		r.readEntries(n, defaults)
	}
}

// document is the one document of a file, nil if it has faults.
func (r *reader) document(text []byte) *yaml.Node {
	var document, another yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&document)
	if err == nil {
		err = decoder.Decode(&another)
	}
	switch {
	case err == nil:
		r.bad(another.Line, another.Column, "a second document: a file has one")
	case len(document.Content) == 0 && errors.Is(err, io.EOF):
		r.bad(0, 0, `no jobs: write "jobs:", and a list of them`)
	case errors.Is(err, io.EOF):
		return document.Content[0]
	default:
		m := syntaxError.FindStringSubmatch(err.Error())
		if m == nil {
			m = []string{"", "", err.Error()}
		}
		line, _ := strconv.Atoi(m[1]) // 0 without one
		if lineBefore.MatchString(m[2]) {
			line = min(line, bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))) + 1
		}
		r.bad(line, 0, "%s", m[2])
	}
	return nil
}

// checkPlain notes what no job needs: anchors, which make a small file large, tags, zero bytes, and keys that are there
// twice or are no texts.
func (r *reader) checkPlain(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.bad(n.Line, n.Column, "anchors and aliases may not be used: write what jobs share under defaults")
		return
	case n.Style&yaml.TaggedStyle != 0:
		r.bad(n.Line, n.Column, "tags such as %s may not be used: leave it out", strconv.Quote(n.Tag))
	case strings.ContainsRune(n.Value, 0):
		r.bad(n.Line, n.Column, "the text has a zero byte, which no command can get")
	}
	seen := map[string]int{}
	for i, below := range n.Content {
		r.checkPlain(below)
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			continue
		}
		if below.Kind != yaml.ScalarNode {
			r.bad(below.Line, below.Column, "a key must be a text, not %s", kindOf(below))
		} else if first, twice := seen[below.Value]; twice {
			r.bad(below.Line, below.Column, "%q is there already, in line %d: leave one of them out", below.Value, first)
		} else {
			seen[below.Value] = below.Line
		}
	}
}

// entry is a key with its value.
type entry struct{ key, value *yaml.Node }

// entries are those of a map, by key. Keys that aren't known are faults.
func (r *reader) entries(n *yaml.Node, of string, known []string) map[string]entry {
	found := map[string]entry{}
	if n.Kind != yaml.MappingNode {
		r.bad(n.Line, n.Column, "%s: must be a map of %s, not %s", of, known[0]+", "+known[1]+" …", kindOf(n))
		return found
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := entry{n.Content[i], n.Content[i+1]}
		if name := e.key.Value; !slices.Contains(known, name) {
			r.bad(e.key.Line, e.key.Column, "unknown key %q of %s: %s", name, of, suggestion(known, name))
		} else {
			found[name] = e
		}
	}
	return found
}

// suggestion says which key may be meant by one that isn't known.
func suggestion(known []string, name string) string {
	if flag := strings.TrimLeft(name, "-"); flag != "" {
		for _, k := range keys {
			if k.flag == flag && slices.Contains(known, k.name) {
				return "did you mean " + k.name + "?"
			}
		}
	}
	if near, n := inspect.BySimilarity(known, name); n > 0 {
		return "did you mean " + near[0] + "?"
	}
	switch k := keyOf(name); {
	case k != nil:
		return "each job has its own"
	case len(known) < 5:
		return "there are " + strings.Join(known, ", ")
	}
	return "docs/jobs.schema.json has all keys"
}

// kindOf is what a node is, for people.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	}
	return "a text"
}
