//go:build !linux

package service

import "runtime/debug"

// GiveBack returns freed memory to the system.
func GiveBack() error {
	debug.FreeOSMemory()
	return nil
}
