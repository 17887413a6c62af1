package localpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	dataName     = "data"
	runName      = "run"
	passwordName = "password"
	logName      = "postgres.log"
	lockName     = "lock"

	superuser = "autopost"
	database  = "autopost"
)

// clusterMajor returns the major version of the cluster in dir, 0 if there is none. It rejects a
// directory that this package did not make.
func clusterMajor(dir string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return 0, fmt.Errorf("%s is itself a PostgreSQL data directory; it is not changed: choose another directory", dir)
	}
	data := filepath.Join(dir, dataName)
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s exists but is not a PostgreSQL data directory; it is not changed: choose another directory", data)
	}
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(filepath.Join(dir, passwordName)); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s is a PostgreSQL data directory without the file %q next to it; it is not changed: "+
			"restore that file, or choose another place", data, passwordName)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s: unreadable PG_VERSION: %w", data, err)
	}
	return major, nil
}

// password returns the superuser's password and creates it at first use. The file is written before the
// cluster exists, so a crash cannot leave a cluster without a known password.
func password(dir string) (string, error) {
	path := filepath.Join(dir, passwordName)
	text, err := os.ReadFile(path)
	if err == nil {
		if secret := strings.TrimSpace(string(text)); secret != "" {
			return secret, nil
		}
		return "", fmt.Errorf("%s is empty: restore it from a backup", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	secret := rand.Text()
	partial := path + ".partial"
	if err := writeSynced(partial, secret+"\n"); err != nil {
		return "", err
	}
	if err := os.Rename(partial, path); err != nil {
		return "", err
	}
	return secret, syncDir(dir)
}

// makeCluster runs initdb in a temporary directory and renames the result, so that data/ is either
// absent or complete.
func makeCluster(ctx context.Context, o Options, found installation, a account, secret string) error {
	work, err := os.MkdirTemp(o.Dir, "initdb-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	pwfile, fresh := filepath.Join(work, passwordName), filepath.Join(work, dataName)
	if err := writeSynced(pwfile, secret+"\n"); err != nil {
		return err
	}
	if err := errors.Join(a.give(pwfile), a.give(work)); err != nil {
		return err
	}
	args := append(localeArgs(found.major), "-D", fresh, "-U", superuser, "-E", "UTF8",
		"--auth=scram-sha-256", "--pwfile="+pwfile, "--data-checksums")
	if o.Volatile {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(found.bin, "initdb"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = work, environment(), attributes(a)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, filepath.Join(o.Dir, dataName)); err != nil {
		return err
	}
	return syncDir(o.Dir)
}

// localeArgs select a locale in which lower() handles every alphabet, and text is compared by its bytes: every index
// begins with texts, and PostgreSQL before 17 compares them three times slower in C.UTF-8. Locale C alone does not fold Cyrillic.
func localeArgs(major int) []string {
	if major >= 17 {
		return []string{"--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"}
	}
	return []string{"--locale=C.UTF-8", "--lc-collate=C"}
}

func writeSynced(path, text string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
