// Package figures carries what the proofs measured into the README: a proof
// saves its figures, and the program in ./readme writes them between two marks,
// so that no figure there is typed.
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
	Name    string   `json:"name"`    // the proof, such as "simulation"; also the name of the file
	Command string   `json:"command"` // which repeats it, from the root of the repository
	Figures []Figure `json:"figures"`
}

// Variable names the environment variable with the directory to save into. A
// proof that runs without it saves nothing.
const Variable = "SLOTLEASE_FIGURES"

// Save writes the figures of a proof to DIR/NAME.json, if DIR is set in the
// environment. An earlier run's are replaced.
func Save(p Proof) error {
	dir := os.Getenv(Variable)
	if dir == "" {
		return nil
	}
	data, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return fmt.Errorf("save figures of %s: %w", p.Name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save figures of %s: %w", p.Name, err)
	}
	return os.WriteFile(filepath.Join(dir, p.Name+".json"), append(data, '\n'), 0o644)
}
