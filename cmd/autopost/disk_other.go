//go:build !linux && !darwin

package main

// diskOf does not know.
func diskOf(string) (free, size uint64, ok bool) { return 0, 0, false }
