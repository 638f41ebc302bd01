package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
)

// take takes a value out of a map. What is left at the end, as is a value of another type, has no equivalent.
func take[T any](from map[string]any, key string) (value T) {
	if found, ok := from[key].(T); ok {
		delete(from, key)
		return found
	}
	return value
}

// CronJobs is the jobs.yaml of files with CronJobs of Kubernetes. Other objects in them are passed over.
func CronJobs(names ...string) ([]byte, error) {
	var f file
	for _, name := range names {
		before := len(f.jobs) + len(f.about)
		if err := f.addManifests(name); err != nil {
			text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:")
			return nil, fmt.Errorf("%s: %s", name, strings.Join(strings.Fields(text), " "))
		}
		if len(f.jobs)+len(f.about) == before {
			return nil, fmt.Errorf("%s: has no CronJob", name)
		}
	}
	return f.text()
}

// addManifests adds the CronJobs of a file.
func (f *file) addManifests(name string) error {
	text, err := jobfile.Load(name)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for err == nil {
		var document yaml.Node
		if err = decoder.Decode(&document); err == nil {
			keepTexts(&document)
			err = f.addManifest(name, document.Content[0])
		} else if errors.Is(err, io.EOF) {
			return nil
		}
	}
	return err
}

// keepTexts makes texts of dates and fractions, as they are written: a date is a text to Kubernetes.
func keepTexts(n *yaml.Node) {
	if tag := n.ShortTag(); tag == "!!timestamp" || tag == "!!float" {
		n.Tag = "!!str"
	}
	for _, below := range n.Content {
		keepTexts(below)
	}
}

// addManifest adds an object, if it is a CronJob, or those in a List.
func (f *file) addManifest(name string, n *yaml.Node) error {
	n = cmp.Or(n.Alias, n)
	var object struct {
		Kind     string
		Items    []yaml.Node
		Metadata struct{ Name string }
		Spec     map[string]any
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	err := n.Decode(&object)
	switch place := fmt.Sprintf("%s:%d: CronJob %s", name, n.Line, object.Metadata.Name); {
	case object.Kind == "List":
		for i := range object.Items {
			err = cmp.Or(err, f.addManifest(name, &object.Items[i]))
		}
	case object.Kind != "CronJob" && (object.Kind != "" || err == nil): // It has none if a key is there twice, too.
		return nil
	case object.Spec["suspend"] == true:
		f.about = append(f.about, lacks("%s is left out, since it has suspend: true", place))
	case err == nil:
		f.add(object.Metadata.Name, place).addCronJob(object.Spec)
	}
	return err
}

// addCronJob adds what a CronJob says.
func (j *job) addCronJob(spec map[string]any) {
	type object = map[string]any
	task := take[object](take[object](spec, "jobTemplate"), "spec")
	pod := take[object](take[object](task, "template"), "spec")
	containers := take[[]any](pod, "containers")
	if len(containers) != 1 {
		j.lack("%d containers: a job has one command", len(containers))
	}
	container, _ := append(containers, nil)[0].(object)
	j.addSchedule(take[string](spec, "schedule"), take[string](spec, "timeZone"))
	j.addContainer(container)
	switch take[string](spec, "concurrencyPolicy") {
	case "Replace":
		j.set("overrun", "stop")
	case "Forbid":
		j.set("overrun", "finish")
	default:
		j.lack("concurrencyPolicy Allow: a run that takes longer than its slot isn't joined by the next one")
	}
	for _, bound := range []struct {
		key, name string
		from      object
	}{{"startWithin", "startingDeadlineSeconds", spec}, {"timeout", "activeDeadlineSeconds", task}, {"timeout", "activeDeadlineSeconds", pod}} {
		if n, _ := bound.from[bound.name].(int); n > 0 && n <= math.MaxInt32 && j.get(bound.key) == nil {
			j.setSpan(bound.key, time.Duration(n)*time.Second)
			delete(bound.from, bound.name)
		}
	}
	retries := 6 // the default
	if _, ok := task["backoffLimit"].(int); ok {
		retries = take[int](task, "backoffLimit")
	}
	j.set("maxAttempts", retries+1)
	var others []string
	for _, part := range []struct {
		path        string
		left        object
		meaningless []string
	}{{"", spec, []string{"suspend"}}, {"jobTemplate.", task, nil}, {"template.", pod, []string{"restartPolicy"}}, {"container.", container, []string{"name", "imagePullPolicy"}}} {
		for _, key := range slices.Sorted(maps.Keys(part.left)) {
			if !slices.Contains(part.meaningless, key) {
				others = append(others, part.path+key)
			}
		}
	}
	j.lackAll(others)
}

// addSchedule adds when it runs.
func (j *job) addSchedule(schedule, zone string) {
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if after, ok := strings.CutPrefix(schedule, prefix); ok {
			zone, schedule, _ = strings.Cut(after, " ")
		}
	}
	if every, ok := strings.CutPrefix(schedule, "@every "); ok {
		j.lack("@every counts from the start of the controller: slots are aligned to the clock")
		j.set("every", strings.TrimSpace(every))
		return
	}
	j.set("schedule", specs{strings.TrimSpace(schedule)})
	j.setUnlessEmpty("zone", zone)
}

// addContainer adds the command of a container, and its environment.
func (j *job) addContainer(c map[string]any) {
	program := take[[]any](c, "command")
	if len(program) == 0 {
		j.lack("the entrypoint of the image: write its program in front of the arguments")
		program = []any{"false"}
	}
	var command []string
	for _, word := range slices.Concat(program, take[[]any](c, "args")) {
		command = append(command, fmt.Sprint(cmp.Or(word, "")))
	}
	j.lack("image %s: its programs must be on each machine", take[string](c, "image"))
	if strings.Contains(strings.Join(command, " "), "$(") {
		j.lack("$(NAME) in the command, which isn't replaced")
	}
	j.set("command", command)
	j.setUnlessEmpty("dir", take[string](c, "workingDir"))
	for _, e := range take[[]any](c, "env") {
		variable, _ := e.(map[string]any)
		name, value := take[string](variable, "name"), take[string](variable, "value")
		if variable["value"] == nil { // It is empty.
			delete(variable, "value")
		}
		switch {
		case name == "" || strings.Contains(name, "="):
			j.lack("a variable without a name")
		case len(variable) > 0:
			j.lack("the source of the variable %s", name)
		default:
			j.setEnv(name, value)
		}
	}
}
