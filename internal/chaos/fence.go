//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
)

// A fence completes a lease: the resource remembers the highest token that it has seen,
// and refuses lower ones. Here the resource is a list of numbered writes for each worker
// type, in a separate file or server that no fault strikes.
type fence interface {
	// write appends a write, unless one with a higher token is there.
	write(ctx context.Context, workerType string, token int64) (accepted bool, err error)
	// writes returns the tokens of all writes, in the order of acceptance.
	writes(ctx context.Context, workerType string) ([]int64, error)
	close(ctx context.Context)
}

// openFence opens a fence: mongodb://… or the path of a SQLite file.
func openFence(ctx context.Context, where string) (fence, error) {
	if strings.HasPrefix(where, "mongodb:") {
		return openMongoFence(where)
	}
	return openSQLiteFence(ctx, where)
}

// fenceReport is the state of the fence after the run.
type fenceReport struct {
	accepted int
	wrong    []string
}

// checkFence checks that the tokens of the accepted writes never go down.
func checkFence(ctx context.Context, f fence, types []workerType) (fenceReport, error) {
	var r fenceReport
	for _, t := range types {
		tokens, err := f.writes(ctx, t.name)
		if err != nil {
			return r, err
		}
		r.accepted += len(tokens)
		for i := 1; i < len(tokens); i++ {
			if tokens[i] < tokens[i-1] {
				r.wrong = append(r.wrong, fmt.Sprintf("%s: write %d was accepted with token %d after one with %d", t.name, i+1, tokens[i], tokens[i-1]))
			}
		}
	}
	return r, nil
}
