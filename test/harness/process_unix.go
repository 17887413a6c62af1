//go:build unix && !linux

package harness

import "syscall"

// attributes of a child: it lives until the test ends it.
func attributes() *syscall.SysProcAttr { return nil }
