// Package leasectltest tests a leasectl that opens a further store: one that is built by a main package of its own, as
// github.com/slotlease/slotlease/cmd/leasectl/app shows. The test binary of that package becomes the program where [Run]
// starts it:
//
//	func TestMain(m *testing.M) { leasectltest.Main(m, main) }
//
//	func TestTheCommandsWorkOnTheStore(t *testing.T) {
//		leasectltest.Run(t, leasectltest.Harness{
//			Fresh: func(t *testing.T) (uri string, env []string) { return "shelf:" + t.TempDir(), nil },
//			Form:  "shelf:FOLDER", Every: 2 * time.Second, Failover: 500 * time.Millisecond,
//		})
//	}
//
// [Run] lets it create a ledger, run commands under leases, kills the holder, moves a worker type there, and looks at it all by
// the other commands. It needs Linux or another Unix.
package leasectltest
