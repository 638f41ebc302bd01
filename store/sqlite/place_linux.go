package sqlite

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// sharedFileSystems are those that two machines, or two mounts, can use at once with
// separate caches or locks.
var sharedFileSystems = map[uint32]string{
	unix.AFS_FS_MAGIC:         "AFS",
	unix.AFS_SUPER_MAGIC:      "AFS",
	unix.CEPH_SUPER_MAGIC:     "Ceph",
	unix.CIFS_SUPER_MAGIC:     "SMB (CIFS)",
	unix.CODA_SUPER_MAGIC:     "Coda",
	unix.ECRYPTFS_SUPER_MAGIC: "eCryptfs",
	unix.FUSE_SUPER_MAGIC:     "FUSE",
	unix.NFS_SUPER_MAGIC:      "NFS",
	unix.OCFS2_SUPER_MAGIC:    "OCFS2",
	unix.SMB2_SUPER_MAGIC:     "SMB",
	unix.SMB_SUPER_MAGIC:      "SMB",
	unix.V9FS_MAGIC:           "9p",
	0x01161970:                "GFS2",
	0x0bd00bd0:                "Lustre",
	0x19830326:                "BeeGFS",
	0x20030528:                "OrangeFS",
	0x47504653:                "GPFS",
	0x61636673:                "ACFS",
	0x786f4256:                "VirtualBox shared folders",
	0x7c7c6673:                "Parallels shared folders",
	0xa501fcf5:                "VxFS",
	0xaad7aaea:                "PanFS",
	0xbacbacbc:                "VMware shared folders",
	0xbeefdead:                "StorNext",
}

// statfs is the kernel's, but in tests.
var statfs = unix.Statfs

// sharedFileSystem is the name of a file system that isn't local, or empty.
func sharedFileSystem(path string) string {
	var s unix.Statfs_t
	if err := statfs(path, &s); err != nil {
		return "" // Opening it says why.
	}
	return sharedFileSystems[uint32(s.Type)]
}

// room is how many bytes this process may add to the file system of a directory. It isn't known of one that counts
// no blocks.
func room(dir string) (bytes uint64, known bool) {
	var s unix.Statfs_t
	if err := statfs(dir, &s); err != nil || s.Blocks == 0 || s.Bsize <= 0 {
		return 0, false
	}
	free := s.Bavail
	if os.Geteuid() == 0 {
		free = s.Bfree // The rest is kept for root.
	}
	return free * uint64(s.Bsize), true
}

// mounted reports whether a file is itself a mount point, as one that a container got
// alone. Linux says so since 5.8; before that the list of mounts does.
func mounted(path string) bool {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, 0, &s); err == nil && s.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	list, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	defer func() { _ = list.Close() }()
	target, err := filepath.EvalSymlinks(path)
	return err == nil && listed(list, target)
}

// listed reports whether a list of mounts has a mount point.
func listed(mounts io.Reader, path string) bool {
	escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(path)
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && fields[4] == escaped {
			return true
		}
	}
	return false
}
