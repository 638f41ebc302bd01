package postgrespeer

import "golang.org/x/sys/unix"

// removeShared removes a segment of System V shared memory, unless a process uses it.
func removeShared(id int) {
	var about unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &about); err == nil && about.Nattch == 0 {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}
