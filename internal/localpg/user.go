package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system user that runs the server.
type account struct {
	uid, gid uint32
	// switched: this process is root and the server runs as another user.
	switched bool
}

// accountFor returns the current user. For root it returns the owner of the cluster; for a new cluster,
// the first existing user of the usual names.
func accountFor(dataDir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	if info, err := os.Stat(dataDir); err == nil {
		uid, gid := owner(info)
		if uid == 0 {
			return account{}, fmt.Errorf("%s belongs to root, but PostgreSQL refuses to run as root: "+
				"chown -R it to the user that shall run PostgreSQL", dataDir)
		}
		return account{uid: uid, gid: gid, switched: true}, nil
	}
	for _, name := range []string{"autopost", "postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(found.Uid, 10, 32)
		gid, errG := strconv.ParseUint(found.Gid, 10, 32)
		if errU == nil && errG == nil && uid != 0 {
			return account{uid: uint32(uid), gid: uint32(gid), switched: true}, nil
		}
	}
	return account{}, errors.New("postgres refuses to run as root, and none of the users autopost, postgres and " +
		"nobody exists to run it: useradd --system autopost, or start as an ordinary user")
}

// give makes the account the owner of a path that this process has just created.
func (a account) give(path string) error {
	if !a.switched {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// makeDir creates dir and its missing parents. Root's directories let every user pass, because the
// server's user must enter them; other users' directories are private.
func (a account) makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := a.makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if a.switched {
		return os.Chmod(dir, 0o711)
	}
	return nil
}

// mayReach reports, before anything is created, the parent directory of dir that the account cannot
// enter.
func (a account) mayReach(dir string) error {
	if !a.switched {
		return nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && !a.mayPass(info) {
			return fmt.Errorf("PostgreSQL cannot run as root; it runs as user %d, who cannot enter %s: "+
				"choose another directory (AUTOPOST_DATA_DIR=/var/lib/autopost), or chmod o+x it, "+
				"or start as an ordinary user", a.uid, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

func (a account) mayPass(info fs.FileInfo) bool {
	uid, gid := owner(info)
	mode := info.Mode().Perm()
	switch {
	case uid == a.uid:
		return mode&0o100 != 0
	case gid == a.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

func owner(info fs.FileInfo) (uid, gid uint32) {
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Uid, stat.Gid
}
