// Package convert writes jobs.yaml from what other schedulers read: crontabs, CronJobs of Kubernetes, and timers of systemd.
//
// Nothing is left out in silence: what has no equivalent is named in a comment above its job.
package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
)

// file is a jobs.yaml to be written.
type file struct {
	about []string // comments of no job
	jobs  []*job
	names []string // that jobs have
}

// job is a job to be written.
type job struct {
	object

	comments []string
}

// add adds a job that was found at a place.
func (f *file) add(name, place string) *job {
	j := &job{comments: []string{place}}
	j.set("name", f.workerType(name))
	f.jobs = append(f.jobs, j)
	return j
}

// workerType is a valid worker type that no other job has, and as near to a name as may be.
func (f *file) workerType(name string) string {
	valid := strings.Map(func(r rune) rune {
		if store.CheckWorkerType("x"+string(r)) != nil {
			return '-'
		}
		return r
	}, name)
	if valid = strings.TrimLeft(valid, "._-"); valid == "" {
		valid = "job"
	}
	const longest = 63
	unique := valid[:min(len(valid), longest)]
	for n := 2; slices.Contains(f.names, unique); n++ {
		suffix := "-" + strconv.Itoa(n)
		unique = valid[:min(len(valid), longest-len(suffix))] + suffix
	}
	f.names = append(f.names, unique)
	return unique
}

// setUnlessEmpty gives a key a text, if there is one.
func (j *job) setUnlessEmpty(key, text string) {
	if text != "" {
		j.set(key, text)
	}
}

// setSpan gives a key a duration.
func (j *job) setSpan(key string, d time.Duration) {
	text := d.String()
	if d%time.Second == 0 {
		text = display.Brief(d) // It rounds to seconds.
	}
	j.set(key, text)
}

// setEnv sets a variable of the environment. Of those with one name the last counts.
func (j *job) setEnv(name, value string) {
	env, _ := j.get("env").(object)
	env.set(name, value)
	j.set("env", env)
}

// lack says what has no equivalent.
func (j *job) lack(format string, args ...any) {
	j.comments = append(j.comments, lacks(format, args...))
}

// lackAll says it of several things, if there are any.
func (j *job) lackAll(things []string) {
	if len(things) > 0 {
		j.lack("%s", strings.Join(things, ", "))
	}
}

func lacks(format string, args ...any) string {
	return "no equivalent: " + fmt.Sprintf(format, args...)
}

// text is the file as YAML.
func (f *file) text() ([]byte, error) {
	for _, j := range f.jobs {
		if !utf8.ValidString(fmt.Sprint(j.object)) {
			return nil, fmt.Errorf("%s: has a text that is no UTF-8, as jobs.yaml must be: convert the file to it first", j.comments[0])
		}
	}
	var defaults object
	if len(f.jobs) > 1 {
		defaults = f.defaults()
	}
	return written(f, defaults)
}

// defaults takes what all jobs have in common out of them.
func (f *file) defaults() object {
	var jobs, envs []*object
	for _, j := range f.jobs {
		env, _ := j.get("env").(object)
		jobs, envs = append(jobs, &j.object), append(envs, &env)
	}
	found := common(jobs, "zone", "user", "dir", "maxAttempts")
	if env := common(envs, envs[0].keys()...); len(env) > 0 {
		found.set("env", env)
	}
	for i, j := range jobs {
		if len(*envs[i]) == 0 {
			j.remove("env")
		} else {
			j.set("env", *envs[i])
		}
	}
	return found
}

// common takes the keys with which several maps have one value out of them. The values are texts and numbers.
func common(maps []*object, keys ...string) (found object) {
	for _, key := range keys {
		value := maps[0].get(key)
		if value == nil || slices.ContainsFunc(maps, func(o *object) bool { return o.get(key) != value }) {
			continue
		}
		found.set(key, value)
		for _, o := range maps {
			o.remove(key)
		}
	}
	return found
}
