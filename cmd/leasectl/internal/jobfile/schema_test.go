package jobfile

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// schemaFile is the published JSON Schema of jobs.yaml.
const schemaFile = "../../../../docs/jobs.schema.json"

var update = flag.Bool("update", false, "write the JSON Schema anew")

// schema is a JSON Schema, as far as jobs.yaml needs one.
type schema struct {
	Schema      string    `json:"$schema,omitempty"`
	ID          string    `json:"$id,omitempty"`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description,omitempty"`
	Type        any       `json:"type,omitempty"` // a string or several
	Enum        []any     `json:"enum,omitempty"`
	AnyOf       []*schema `json:"anyOf,omitempty"`
	Items       *schema   `json:"items,omitempty"`
	MinItems    int       `json:"minItems,omitempty"`
	Required    []string  `json:"required,omitempty"`
	Properties  object    `json:"properties,omitempty"`
	Additional  any       `json:"additionalProperties,omitempty"` // false or a schema
}

// object are properties in their order.
type object []property

type property struct {
	name string
	of   *schema
}

func (o object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, err
		}
		of, err := json.Marshal(p.of)
		if err != nil {
			return nil, err
		}
		b.Write(append(append(name, ':'), of...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// value is the schema of the value of a key.
func (k key) schema() *schema {
	text := &schema{Type: []string{"string", "number", "boolean"}}
	s := &schema{}
	switch k.kind {
	case single:
		s.Type = []string{"string", "number"}
	case boolean:
		s.Type = "boolean"
	case repeated:
		s.AnyOf = []*schema{{Type: "string"}, {Type: "array", Items: text}}
	case arguments:
		s.AnyOf = []*schema{{Type: "string"}, {Type: "array", Items: text, MinItems: 1}}
	case labels, variables:
		s.Type, s.Additional = "object", text
	}
	if k.words != "" {
		s.Type = nil
		for word := range strings.SplitSeq(k.words, "|") {
			s.Enum = append(s.Enum, word)
		}
	}
	s.Description = k.about
	return s
}

// orNull is a schema that takes null, too, which leaves out a default.
func (s *schema) orNull() *schema {
	if s.Enum == nil {
		return &schema{Description: s.Description, AnyOf: []*schema{{Type: s.Type, AnyOf: s.AnyOf, Additional: s.Additional}, {Type: "null"}}}
	}
	s.Enum = append(s.Enum, nil)
	return s
}

// jobsSchema is the JSON Schema of jobs.yaml.
func jobsSchema() *schema {
	job := &schema{Type: "object", Required: []string{"name", "command"}, Additional: false}
	defaults := &schema{Type: "object", Additional: false, Description: "What jobs have that don't say otherwise."}
	for _, k := range keys {
		if k.alone {
			job.Properties = append(job.Properties, property{k.name, k.schema()})
			continue
		}
		job.Properties = append(job.Properties, property{k.name, k.schema().orNull()})
		defaults.Properties = append(defaults.Properties, property{k.name, k.schema()})
	}
	return &schema{
		Schema: "http://json-schema.org/draft-07/schema#", ID: "https://raw.githubusercontent.com/slotlease/slotlease/main/docs/jobs.schema.json",
		Title: "The jobs of leasectl cron", Type: "object", Required: []string{"jobs"}, Additional: false,
		Properties: object{{"defaults", defaults}, {"jobs", &schema{Type: "array", Items: job}}},
	}
}

func TestTheSchemaIsThatOfTheKeys(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	must(t, e.Encode(jobsSchema()))
	if *update {
		must(t, os.WriteFile(schemaFile, b.Bytes(), 0o644))
	}
	got, err := os.ReadFile(schemaFile)
	must(t, err)
	if d := cmp.Diff(b.String(), string(got)); d != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", schemaFile, d)
	}
}

func TestThePageHasAllKeys(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/cron.md")
	must(t, err)
	for _, k := range keys {
		if !strings.Contains(string(page), "`"+k.name+"`") {
			t.Errorf("docs/cron.md lacks %s", k.name)
		}
	}
	for _, name := range []string{"crontab jobs.crontab", "yaml jobs.yaml"} {
		_, text, _ := strings.Cut(string(page), "```"+name+"\n")
		text, _, _ = strings.Cut(text, "```")
		if jobs, _, err := readText(t, "jobs", text); len(jobs) < 2 || err != nil {
			t.Errorf("%s of docs/cron.md: %d jobs, %v", name, len(jobs), err)
		}
	}
}

// problem is why a value doesn't fit a schema, empty if it does.
func (s *schema) problem(at string, value any) string {
	switch {
	case s.Enum != nil && !slices.Contains(s.Enum, value):
		return fmt.Sprintf("%s: %v is none of %v", at, value, s.Enum)
	case s.Type != nil && !strings.Contains(fmt.Sprint(s.Type), typeOf(value)):
		return fmt.Sprintf("%s: is of type %s, not %v", at, typeOf(value), s.Type)
	case s.AnyOf != nil && !slices.ContainsFunc(s.AnyOf, func(one *schema) bool { return one.problem(at, value) == "" }):
		return at + ": fits nothing"
	}
	if list, ok := value.([]any); ok && s.Items != nil {
		if len(list) < s.MinItems {
			return at + ": too short"
		}
		for i, item := range list {
			if p := s.Items.problem(fmt.Sprint(at, "/", i), item); p != "" {
				return p
			}
		}
	}
	m, ok := value.(map[string]any)
	if !ok || s.Type != "object" {
		return ""
	}
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			return at + ": lacks " + name
		}
	}
	for name, v := range m {
		of, _ := s.Additional.(*schema)
		for _, p := range s.Properties {
			if p.name == name {
				of = p.of
			}
		}
		if of == nil {
			return at + ": unknown " + name
		}
		if p := of.problem(at+"/"+name, v); p != "" {
			return p
		}
	}
	return ""
}

func typeOf(value any) string {
	switch value.(type) {
	case string, time.Time: // A date without quotes is a text to YAML 1.2.
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// The schema takes what Read takes, and refuses what has another form.
func TestTheSchemaAndTheReaderAgree(t *testing.T) {
	for text, want := range map[string]bool{
		"jobs: [{name: a, command: x}]": true,
		"defaults: {every: 1h, env: {A: 1, B: true}, labels: {c: d}, overrun: stop}\njobs: [{name: a, command: [x, 1], every: , overrun: , env: , schedule: ['@daily'], except: 2026-12-24, continuous: true}]": true,
		"jobs: []":                                          true,
		"jobs: [{name: a, command: []}]":                    false,
		"jobs: [{name: a}]":                                 false,
		"jobs: [{command: a}]":                              false,
		"jobs: [{name: a, command: x, comand: x}]":          false,
		"jobs: [{name: a, command: x, env: [A]}]":           false,
		"jobs: [{name: a, command: x, timeout: {a: b}}]":    false,
		"jobs: [{name: a, command: x, continuous: 'true'}]": false,
		"defaults: {name: x}\njobs: []":                     false,
		"defaults: {env: }\njobs: [{name: a, command: x}]":  false,
		"defaults: {}":                                      false,
		"jobs: {}":                                          false,
		"a: {}":                                             false,
	} {
		var value any
		must(t, yaml.Unmarshal([]byte(text), &value))
		problem := jobsSchema().problem("", value)
		_, _, err := readText(t, "jobs.yaml", text)
		if (problem == "") != want || (err == nil) != want {
			t.Errorf("%s: by the schema %q, by Read %v, want that it fits: %v", text, problem, err, want)
		}
	}
}
