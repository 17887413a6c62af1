// Package localpg runs the private PostgreSQL of a single-machine installation: it finds the installed
// binaries, creates a database cluster once, starts it, attaches to it if another process has started
// it, and stops it. It works on Linux, macOS and the BSDs.
//
// The server listens on a Unix socket only. It ends with the process that started it: on Linux it shuts
// down cleanly even if that process is killed; elsewhere it keeps running and the next Start attaches
// to it.
//
// The package owns these files of the directory:
//
//	data/          the cluster; made in a temporary directory, then renamed
//	run/           the socket, unless its path would be too long
//	password       of the database superuser "autopost", mode 0600
//	postgres.log   the server's log
//	lock           held while a process starts or attaches
//
// The package never deletes, recreates or upgrades an existing cluster. It rejects a directory that it
// did not make before it changes anything in it. PostgreSQL itself cleans up after a crash
// (postmaster.pid, unfinished transactions).
//
// PostgreSQL refuses to run as root. For root, the server runs as the owner of the cluster; a new
// cluster gets the first existing user of autopost, postgres and nobody. That user needs access to
// every parent directory.
package localpg
