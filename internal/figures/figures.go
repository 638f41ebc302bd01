// Package figures carries the measurements of the proofs into a document: a proof
// saves its figures, and the program in ./table writes them between two marks, so no
// figure there is typed by hand.
package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Figure is one measured thing.
type Figure struct {
	What  string `json:"what"`  // such as "simulated years"
	Value string `json:"value"` // such as "27.4"
}

// Proof is what one run of a proof measured.
type Proof struct {
	Name    string   `json:"name"`    // such as "simulation"; also the name of the file
	Command string   `json:"command"` // repeats the proof, from the root of the repository
	Figures []Figure `json:"figures"`
}

// Variable is the environment variable with the directory to save into. A proof that
// runs without it saves nothing.
const Variable = "SLOTLEASE_FIGURES"

// Save writes the figures of a proof to DIR/NAME.json, and replaces those of an earlier
// run. DIR is the value of [Variable].
func Save(p Proof) error {
	dir := os.Getenv(Variable)
	if dir == "" {
		return nil
	}
	data, err := json.MarshalIndent(p, "", "\t")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, p.Name+".json"), append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save figures of %s: %w", p.Name, err)
	}
	return nil
}
