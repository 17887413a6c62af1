//go:build unix && !linux

package localpg

import "syscall"

// attributes make the server another user's where needed and keep the terminal's
// Ctrl-C from it: we stop it after our own work has ended.
func attributes(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}
