package localpg

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSocketPath is the longest socket path on all supported systems, in bytes: Linux allows 107, macOS
// and the BSDs 103.
const maxSocketPath = 103

const socketName = ".s.PGSQL.5432"

// socketDir creates the directory of the socket: run/ in dir, or a short one under the system's
// temporary directory if that path is too long.
func socketDir(dir string, a account) (string, error) {
	path := filepath.Join(dir, runName)
	if len(filepath.Join(path, socketName)) > maxSocketPath {
		sum := sha256.Sum256([]byte(dir))
		path = filepath.Join(os.TempDir(), "autopost-"+hex.EncodeToString(sum[:6]))
		if len(filepath.Join(path, socketName)) > maxSocketPath {
			return "", fmt.Errorf("%s and %s are both too long for a Unix socket (%d bytes): "+
				"choose a shorter directory or TMPDIR", dir, os.TempDir(), maxSocketPath)
		}
	}
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return path, a.give(path)
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	// Any user can create a directory of that name in a shared temporary directory.
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if uid, _ := owner(info); !info.IsDir() || uid != a.uid || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is not a private directory of user %d: remove it", path, a.uid)
	}
	return path, nil
}

// lastServer returns the process and the socket directory of the server that last wrote postmaster.pid;
// zero values if the file is absent or incomplete. It may be stale.
func lastServer(dir string) (pid int, socket string) {
	text, err := os.ReadFile(filepath.Join(dir, dataName, "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	const pidLine, socketLine = 0, 4
	lines := strings.Split(string(text), "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(lines[pidLine]))
	if len(lines) > socketLine {
		socket = strings.TrimSpace(lines[socketLine])
	}
	return pid, socket
}
