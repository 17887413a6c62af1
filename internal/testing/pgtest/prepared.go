package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"autopost/internal/localpg"
	"autopost/internal/pg/schema"
)

// prepare fills the folder of a server with the migrated template. The test packages of one run share a copy of it in
// AUTOPOST_TEST_BIN, which the Makefile sets: to create and migrate a server costs three seconds of processor time, to copy
// it a tenth of one. The first package makes the copy, and the others wait for that.
func prepare(ctx context.Context, options localpg.Options) (err error) {
	shelf := os.Getenv("AUTOPOST_TEST_BIN")
	if shelf == "" {
		return makeTemplate(ctx, options)
	}
	digest, err := preparedDigest(options)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(shelf, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(shelf, "postgres.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	folder := filepath.Join(shelf, "postgres-"+digest)
	if _, err := os.Stat(folder); err == nil {
		return copyFolder(ctx, folder, options.Dir)
	}
	old, err := filepath.Glob(filepath.Join(shelf, "postgres-*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := makeTemplate(ctx, options); err != nil {
		return err
	}
	if err := copyFolder(ctx, options.Dir, folder+".new"); err != nil {
		return err
	}
	return os.Rename(folder+".new", folder)
}

// preparedDigest covers all that the template depends on. Migrations create the partitions of the present day.
func preparedDigest(options localpg.Options) (string, error) {
	sum := sha256.New()
	functions, err := schema.FunctionsDigest()
	if err != nil {
		return "", err
	}
	options.Dir = ""
	fmt.Fprintln(sum, functions, options, time.Now().UTC().Format(time.DateOnly))
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func copyFolder(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the prepared server: %w: %s", err, out)
	}
	return nil
}
