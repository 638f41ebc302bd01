package jobfile

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// renameJob is how a job of jobs.yaml gets another name.
const renameJob = "give one of them another name"

// record is a job of jobs.yaml while it is read.
type record struct {
	*reader
	Job

	given, defaults map[string]entry
}

// readEntries reads a job.
func (r *reader) readEntries(n *yaml.Node, defaults map[string]entry) {
	before := len(r.faults)
	j := record{reader: r, Job: Job{Place: r.at(n), Keyed: true}, given: r.entries(n, "a job", keyNames(false)), defaults: maps.Clone(defaults)}
	if n.Kind != yaml.MappingNode {
		return
	}
	for name, e := range j.given {
		if kindOf(e.value) == "empty" && !keyOf(name).alone { // without the default
			delete(j.given, name)
			delete(j.defaults, name)
		}
	}
	counts := j.conditions()
	for _, k := range keys {
		own, isOwn := j.given[k.name]
		standard, isStandard := j.defaults[k.name]
		isStandard = isStandard && counts[k.with]
		switch {
		case isOwn && isStandard && (k.kind == variables || k.kind == labels):
			j.pairs(k, standard.value, own.value)
		case isOwn:
			j.take(k, own.value)
		case isStandard:
			j.take(k, standard.value)
		case k.name == oncePerSlot && counts[oncePerSlot]:
			j.option(k, j.Place, "true")
		case k.needed:
			r.bad(n.Line, n.Column, "a job without a %s: give it one", k.name)
		}
	}
	if len(r.faults) == before {
		r.add(j.Job, r.at(j.given["name"].value), renameJob)
	}
}

// conditions say what is so of a job, as [key.with] names it: by its own keys or by default. Of schedule and every, a job's own
// takes the place of either default.
func (j *record) conditions() map[string]bool {
	has := func(name string, from map[string]entry) bool { _, ok := from[name]; return ok }
	every, schedule := has("every", j.given), has("schedule", j.given)
	isContinuous := j.isTrue(continuous, false)
	once := j.isTrue(oncePerSlot, !isContinuous)
	return map[string]bool{
		"": true, continuous: isContinuous, oncePerSlot: once, "!" + oncePerSlot: !once, "!every": !every, "!schedule": !schedule,
		"every": every || has("every", j.defaults) && !schedule, "schedule": schedule || has("schedule", j.defaults) && !every,
	}
}

// isTrue reports that a boolean is true, by itself or by default.
func (j *record) isTrue(name string, without bool) bool {
	for _, from := range []map[string]entry{j.given, j.defaults} {
		if e, ok := from[name]; ok {
			return strings.EqualFold(e.value.Value, "true")
		}
	}
	return without
}

// at is the place of a node.
func (r *reader) at(n *yaml.Node) Place { return Place{r.file, n.Line, n.Column} }

// take takes the value of a key.
func (j *record) take(k key, n *yaml.Node) {
	switch k.kind {
	case single:
		if j.isText(k.name, n) {
			j.takeText(k, n)
		}
	case boolean:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			j.bad(n.Line, n.Column, "%s: must be true or false", k.name)
		} else if strings.EqualFold(n.Value, "true") {
			j.option(k, j.at(n), "true")
		}
	case repeated:
		for _, item := range items(n) {
			if j.isText(k.name, item) {
				j.option(k, j.at(item), item.Value)
			}
		}
	case labels, variables:
		j.pairs(k, n)
	case arguments:
		j.takeCommand(k, n)
	}
}

// takeText takes a text.
func (j *record) takeText(k key, n *yaml.Node) {
	switch k.name {
	case "name":
		j.Name = n.Value
		j.checkName(n.Value, j.at(n))
	case "stdin":
		j.Stdin = n.Value
	case "user":
		j.User = n.Value
	case "dir":
		j.Dir = n.Value
	default:
		j.option(k, j.at(n), n.Value)
	}
}

// takeCommand takes the command of a job.
func (j *record) takeCommand(k key, n *yaml.Node) {
	for _, item := range items(n) {
		if !j.isText(k.name, item) {
			return
		}
		j.Command = append(j.Command, item.Value)
	}
	if len(j.Command) == 0 || strings.TrimSpace(j.Command[0]) == "" {
		j.bad(n.Line, n.Column, "command: is empty: write a list of a program and its arguments, or a line for a shell")
	}
	if n.Kind == yaml.ScalarNode {
		j.Command = []string{defaultShell, "-c", n.Value}
	}
}

// pairs takes maps of texts. Of those with one name the last counts.
func (j *record) pairs(k key, maps ...*yaml.Node) {
	var found []entry
	for _, n := range maps {
		if n.Kind != yaml.MappingNode {
			j.bad(n.Line, n.Column, "%s: must be a map, not %s", k.name, kindOf(n))
			continue
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			e := entry{n.Content[i], n.Content[i+1]}
			found = slices.DeleteFunc(found, func(earlier entry) bool { return earlier.key.Value == e.key.Value })
			found = append(found, e)
		}
	}
	for _, e := range found {
		switch name := e.key.Value; {
		case !j.isText(k.name+": "+e.key.Value, e.value):
		case k.kind == labels:
			j.option(k, j.at(e.value), name+"="+e.value.Value)
		case name == "" || strings.Contains(name, "="):
			j.bad(e.key.Line, e.key.Column, "%s: %q is no name of a variable: it must not be empty, and have no =", k.name, name)
		default:
			j.Env = append(j.Env, name+"="+e.value.Value)
		}
	}
}

// isText reports that a value is a text, or notes that it isn't.
func (j *record) isText(what string, n *yaml.Node) bool {
	ok := n.Kind == yaml.ScalarNode && n.Tag != "!!null"
	if !ok {
		j.bad(n.Line, n.Column, "%s: must be a text, not %s", what, kindOf(n))
	}
	return ok
}

// items are those of a list, or the one that isn't in a list.
func items(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// option adds an option.
func (j *record) option(k key, at Place, value string) {
	j.Options = append(j.Options, Option{at, k.flag, value})
}
