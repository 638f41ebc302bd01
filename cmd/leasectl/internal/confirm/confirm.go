// Package confirm asks an operator before something is changed for all workers.
package confirm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// Ask asks a question whose answer is no unless it is yes; ask is nil if there is nobody to ask.
// The error is nil after a yes, and otherwise says what is so without one.
func Ask(ask func(question string) (string, error), question, otherwise string) error {
	if ask == nil {
		return exit.BadUsage("--yes", fmt.Errorf("the input is no terminal, so that nobody can be asked; %s", otherwise))
	}
	answer, err := ask(question + " [y/N]")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return exit.With(exit.Failure, errors.New(otherwise))
	}
	return nil
}
