package redis

import (
	"context"
	"net"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// A server that has the ledger no longer is left: the next operation looks for the one that has it.
func TestAServerThatTakesNoWritesIsLeft(t *testing.T) {
	t.Parallel()
	for code, left := range map[string]bool{"READONLY": true, "LOADING": true, "MASTERDOWN": true, "CLUSTERDOWN": true, "OOM": false, "BUSY": false} {
		l := open(t, "redis://127.0.0.1/0")
		made := 0
		l.links.open = func(context.Context) (*link, error) {
			made++
			conn, _ := net.Pipe()
			return &link{client: goredis.NewClient(&goredis.Options{}), conn: conn, addr: "127.0.0.1:6379", fit: true}, nil
		}
		for range 2 {
			if err := l.on(t.Context(), func(*link) (bool, error) { return true, replied(code + " it is so") }); !isCode(err, code) {
				t.Fatalf("on() = %v, want %s", err, code)
			}
		}
		if want := map[bool]int{true: 2, false: 1}[left]; made != want {
			t.Errorf("after %s %d connections were made for two operations, want %d", code, made, want)
		}
	}
}
