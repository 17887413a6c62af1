package localpg

import "syscall"

// attributes make the server another user's where needed, keep the terminal's
// Ctrl-C from it (we stop it after our own work has ended), and have the kernel
// send it the signal of a clean shutdown when its starter dies.
func attributes(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}
