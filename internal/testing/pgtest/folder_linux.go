package pgtest

import "syscall"

// memoryFolder is a file system in memory.
const memoryFolder = "/dev/shm"

// enoughMemory is the free space that the servers of all packages need, in bytes.
const enoughMemory = 4 << 30

// fastFolder returns the folder for the data of servers: in memory if there is room for a sample,
// otherwise "", the temporary directory. Proofs at full size may write more than fits into memory.
func fastFolder() string {
	var fs syscall.Statfs_t
	if Long() || syscall.Statfs(memoryFolder, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < enoughMemory {
		return ""
	}
	return memoryFolder
}
