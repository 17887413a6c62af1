// Package localpg keeps the private PostgreSQL of a single-machine install: it
// finds the machine's own binaries, makes a database cluster once, starts it,
// attaches to it when another process of ours has started it already, and stops
// it again. It works on Linux, macOS and the BSDs.
//
// The server listens on a Unix socket only. It lives and dies with the process
// that started it: on Linux it shuts down cleanly even when that process is
// killed, elsewhere a killed starter leaves it running and the next Start
// attaches to it.
//
// The directory belongs to this package:
//
//	data/          the cluster; made in a temporary directory, then renamed
//	run/           the socket, unless its path would be too long
//	password       of the database superuser "autopost", mode 0600
//	postgres.log   what the server says
//	lock           held while a process starts or attaches
//
// An existing cluster is never deleted, re-made or upgraded, and a directory that
// this package has not made is refused before anything in it changes. PostgreSQL
// itself clears what a crash leaves behind (postmaster.pid, unfinished
// transactions); nothing here second-guesses it.
//
// PostgreSQL refuses to run as root. When we are root it runs as the owner of the
// cluster, or for a new one as the user autopost, postgres or nobody, whichever
// exists first; every directory above must then let that user pass.
package localpg
