// Command table writes the figures that the proofs saved into a Markdown file, as
// tables between two marks:
//
//	go run ./internal/figures/table DIR FILE
//
// DIR is where the proofs saved them (see [figures.Variable]). The rest of FILE stays
// as it is.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/internal/figures"
)

// The marks, each on a separate line.
const (
	begin = "<!-- figures: begin -->"
	end   = "<!-- figures: end -->"
)

// order is that of the table. Proofs of other names come after, sorted.
var order = []string{
	"simulation", "simulation-long", "simulation-regimes", "simulation-extended", "simulation-beyond",
	"variants", "model", "model-long",
	"linearizability", "linearizability-simulator", "linearizability-network",
	"chaos-sqlite", "chaos-mongo", "chaos-postgres", "chaos-mysql", "chaos-redis", "chaos-s3", "chaos-azblob", "chaos-etcd", "chaos-kubernetes", "takeover-sqlite", "takeover-mongo", "rolling-sqlite", "rolling-mongo", "done-sqlite", "done-mongo", "overrun-sqlite", "overrun-mongo", "escapes-sqlite", "escapes-mongo", "fuzzing",
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("got %d arguments, want DIR FILE", len(args))
	}
	proofs, err := load(args[0])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	replaced, err := replace(string(text), table(proofs))
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	if replaced == string(text) {
		return nil
	}
	return os.WriteFile(args[1], []byte(replaced), 0o644)
}

// load reads what the proofs saved in a directory, in the order of the table.
func load(dir string) ([]figures.Proof, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no *.json in %q: run the proofs with %s set to it", dir, figures.Variable)
	}
	var proofs []figures.Proof
	var bad []error
	for _, name := range names {
		var p figures.Proof
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, &p)
		}
		if err == nil && (p.Name == "" || p.Command == "" || len(p.Figures) == 0) {
			err = errors.New("want a name, a command and figures")
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", name, err))
		}
		proofs = append(proofs, p)
	}
	slices.SortFunc(proofs, func(a, b figures.Proof) int {
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return proofs, errors.Join(bad...)
}

func rank(name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// table is the Markdown of the proofs: a list, and a table for each kind of which several have the same figures,
// where these stand side by side.
func table(proofs []figures.Proof) string {
	var kinds [][]figures.Proof
	for _, p := range proofs {
		same := func(k []figures.Proof) bool { return kind(k[0]) == kind(p) && slices.Equal(whats(k[0]), whats(p)) }
		if i := slices.IndexFunc(kinds, same); i >= 0 {
			kinds[i] = append(kinds[i], p)
		} else {
			kinds = append(kinds, []figures.Proof{p})
		}
	}
	list, beside := "| Proof | Figures | Repeat with |\n|---|---|---|\n", ""
	for _, k := range kinds {
		if len(k) > 1 {
			beside += "\n" + sideBySide(k)
			continue
		}
		var fs []string
		for _, f := range k[0].Figures {
			fs = append(fs, cell(f.What)+": "+cell(f.Value))
		}
		list += fmt.Sprintf("| %s | %s | `%s` |\n", cell(k[0].Name), strings.Join(fs, "; "), cell(k[0].Command))
	}
	return list + beside
}

// kind is what the name of a proof begins with, such as chaos of chaos-sqlite.
func kind(p figures.Proof) string {
	k, _, _ := strings.Cut(p.Name, "-")
	return k
}

func whats(p figures.Proof) (all []string) {
	for _, f := range p.Figures {
		all = append(all, f.What)
	}
	return all
}

// sideBySide is the table of proofs of one kind that have the same figures, with a column for each.
func sideBySide(proofs []figures.Proof) string {
	header, commands := "| "+cell(kind(proofs[0])), "| repeat with"
	for _, p := range proofs {
		header += " | " + cell(strings.TrimPrefix(p.Name, kind(p)+"-"))
		commands += " | `" + cell(p.Command) + "`"
	}
	rows := header + " |\n" + strings.Repeat("|---", len(proofs)+1) + "|\n"
	for i, what := range whats(proofs[0]) {
		rows += "| " + cell(what)
		for _, p := range proofs {
			rows += " | " + cell(p.Figures[i].Value)
		}
		rows += " |\n"
	}
	return rows + commands + " |\n"
}

// cell makes text fit into one cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// replace puts a table between the marks.
func replace(text, table string) (string, error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended || strings.Contains(rest, begin) || strings.Contains(after, end) || strings.Contains(before, end) {
		return "", fmt.Errorf("want %q and then %q, once each", begin, end)
	}
	return before + begin + "\n" + table + end + after, nil
}
