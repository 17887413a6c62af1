//go:build !linux && !darwin

package daemon

// DiskSpace is not known on this system.
func DiskSpace(string) (free, size uint64, ok bool) { return 0, 0, false }
