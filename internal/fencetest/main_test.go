//go:build linux

package fencetest

import (
	"fmt"
	"os"
	"testing"
)

// roleVariable says that a process of this test binary plays a holder, and isn't the test.
const roleVariable = "FENCETEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	if err := hold(); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
