//go:build linux || darwin

package daemon

import (
	"path/filepath"
	"syscall"
)

// DiskSpace returns the free and the total bytes of the disk of a folder, which need not exist.
func DiskSpace(dir string) (free, size uint64, ok bool) {
	var stat syscall.Statfs_t
	for syscall.Statfs(dir, &stat) != nil {
		parent := filepath.Dir(dir)
		if parent == dir {
			return 0, 0, false
		}
		dir = parent
	}
	return stat.Bavail * uint64(stat.Bsize), stat.Blocks * uint64(stat.Bsize), true
}
