package sqlite

import (
	"testing"
	"time"
)

func TestTheShiftOfATimeNamespaceIsRead(t *testing.T) {
	for lines, want := range map[string]time.Duration{
		"": 0,
		"monotonic           0         0\nboottime            0         0\n":   0,
		"monotonic          -5         1\nboottime         1000 500000000\n":   1000*time.Second + 500*time.Millisecond,
		"monotonic           0         0\nboottime        -1000 500000000\n":   -1000*time.Second + 500*time.Millisecond,
		"1                   0         0\n7                 86400         0\n": 24 * time.Hour,
	} {
		if got, err := namespaceShift([]byte(lines)); err != nil || got != want {
			t.Errorf("namespaceShift(%q) = %v, %v, want %v", lines, got, err, want)
		}
	}
	if got, err := namespaceShift([]byte("boottime soon")); err == nil {
		t.Errorf("namespaceShift(garbage) = %v, want an error", got)
	}
}
