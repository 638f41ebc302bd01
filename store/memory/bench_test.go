package memory_test

import (
	"testing"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) { storetest.BenchmarkTail(b, memory.New(memory.Options{}), nil) }
