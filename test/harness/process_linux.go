package harness

import "syscall"

// attributes have the kernel end the child when the test process dies, whatever
// it dies of.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
