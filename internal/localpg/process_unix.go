//go:build unix && !linux

package localpg

import "syscall"

// attributes set the server's user and keep the terminal's Ctrl-C from it: the instance stops it later.
func attributes(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}
