package media

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// attributesSuffix is the suffix of the file with the content type of an object. The listing of the bucket omits it.
const attributesSuffix = ".attrs"

// Only the user of the daemon reads media, also of an upload that is not complete yet.
const (
	folderMode = 0o700
	fileMode   = 0o600
)

// folder publishes by a rename and an fsync, because the database will then record the object permanently.
type folder struct {
	copying
	root string
}

func (f folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

// publish renames the attributes first, so that an object always has them.
func (f folder) publish(_ context.Context, temporary, key string) error {
	from, to := f.path(temporary), f.path(key)
	if err := f.makeFolders(filepath.Dir(to)); err != nil {
		return err
	}
	for _, suffix := range []string{attributesSuffix, ""} {
		if err := os.Chmod(from+suffix, fileMode); err != nil {
			return err
		}
		if err := syncPath(from + suffix); err != nil {
			return err
		}
		if err := os.Rename(from+suffix, to+suffix); err != nil {
			return err
		}
	}
	return syncPath(filepath.Dir(to))
}

// write closes the folder of temporary files to other users first, because the bucket makes files that all users may read.
func (f folder) write(ctx context.Context, key, contentType string, body io.Reader) error {
	dir := filepath.Dir(f.path(key))
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm() != folderMode {
		if err := os.Chmod(dir, folderMode); err != nil {
			return err
		}
	}
	return f.copying.write(ctx, key, contentType, body)
}

// makeFolders creates dir and its missing parents, each with an fsync.
func (f folder) makeFolders(dir string) error {
	if _, err := os.Stat(dir); err == nil || dir == f.root {
		return err
	}
	parent := filepath.Dir(dir)
	if err := f.makeFolders(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
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

// leftovers removes attributes without an object.
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
