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

// account is the operating-system user that runs the server.
type account struct {
	uid, gid uint32
	// switched is set when we are root and the server must not be.
	switched bool
}

// accountFor picks the user: ourselves, or when we are root the owner of the
// cluster, or for a new one the first of the usual names that exists.
func accountFor(dataDir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	if info, err := os.Stat(dataDir); err == nil {
		uid, gid := owner(info)
		if uid == 0 {
			return account{}, fmt.Errorf("%s belongs to root, as whom PostgreSQL refuses to run: "+
				"chown -R it to the user it shall run as", dataDir)
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

// give hands a path that we have just made to the account.
func (a account) give(path string) error {
	if !a.switched {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// makeDir makes dir and its missing parents. Those of root let everyone pass
// (the server's user must), whatever the umask is; ours are private.
func (a account) makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory", dir)
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

// mayReach reports, before anything is made, which directory on the way to dir
// the account cannot pass.
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
			return fmt.Errorf("we are root, so PostgreSQL runs as user %d, who may not pass %s: "+
				"choose a place outside it (AUTOPOST_DATA_DIR=/var/lib/autopost), or chmod o+x it, "+
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
