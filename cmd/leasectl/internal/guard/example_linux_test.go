package guard_test

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
)

func Example() {
	p, err := guard.Start(guard.Command{
		Path:     "/bin/sh",
		Args:     []string{"-c", "sleep 1000 & exit 7"},
		Deadline: guard.Boottime() + time.Minute,
		Grace:    10 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	status, err := p.Wait()
	fmt.Println(status, err)
	// Output: exit code 7, ended by itself <nil>
}
