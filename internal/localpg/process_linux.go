package localpg

import "syscall"

// attributes set the server's user, keep the terminal's Ctrl-C from it (the instance stops it later),
// and make the kernel send the signal of a clean shutdown when its starter dies.
func attributes(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}
