package media

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// attributesSuffix names the file beside an object's own where the folder's driver
// keeps the content type. Listing the bucket does not show it.
const attributesSuffix = ".attrs"

// folder publishes by renaming, and forces what it published to disk: the database
// will soon say for good that it is there.
type folder struct {
	copying
	root string
}

func (f folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

// publish renames the attributes first: an object is never seen without them.
func (f folder) publish(_ context.Context, temporary, key string) error {
	from, to := f.path(temporary), f.path(key)
	if err := f.makeFolders(filepath.Dir(to)); err != nil {
		return err
	}
	for _, suffix := range []string{attributesSuffix, ""} {
		if err := syncPath(from + suffix); err != nil {
			return err
		}
		if err := os.Rename(from+suffix, to+suffix); err != nil {
			return err
		}
	}
	return syncPath(filepath.Dir(to))
}

// makeFolders makes dir and what is missing above it, each entry forced to disk.
func (f folder) makeFolders(dir string) error {
	if _, err := os.Stat(dir); err == nil || dir == f.root {
		return err
	}
	parent := filepath.Dir(dir)
	if err := f.makeFolders(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncPath(parent)
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// leftovers removes attributes whose object was never finished.
func (f folder) leftovers(_ context.Context, then time.Time) (removed int, err error) {
	dir := f.path(temporaryFolder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, entry := range entries {
		info, infoErr := entry.Info()
		if infoErr != nil || !strings.HasSuffix(entry.Name(), attributesSuffix) || !info.ModTime().Before(then) {
			continue
		}
		if removeErr := os.Remove(filepath.Join(dir, entry.Name())); removeErr == nil {
			removed++
		} else if !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return removed, err
}
