//go:build linux || darwin

package main

import (
	"path/filepath"
	"syscall"
)

// diskOf tells of the disk that holds a folder, or would: the bytes that are free for us, and all.
func diskOf(dir string) (free, size uint64, ok bool) {
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
