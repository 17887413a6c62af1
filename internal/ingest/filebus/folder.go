package filebus

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"autopost/internal/failpoint"
)

// temporarySuffix ends the names of files that are being written. They are hidden.
const temporarySuffix = ".tmp"

// refusal is a file that a folder must not contain.
type refusal struct {
	// code is a stable key.
	code string
	// message has the cause and the remedy.
	message string
}

// Error implements error.
func (r *refusal) Error() string { return r.code + ": " + r.message }

// folder is the root of a source. All names are relative to it, with slashes. No access leaves the root, and no name
// leads through a symbolic link.
type folder struct {
	root *os.Root
	// fault, if set, fails a step of a write in a test: "create", "write", "sync", "rename" or "sync folder".
	fault func(step, name string) error
}

func openFolder(root string) (*folder, error) {
	opened, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &folder{root: opened}, nil
}

// Close releases the root.
func (f *folder) Close() error { return f.root.Close() }

// stat returns the description of a file. Each part of its name must be a folder, and no part a symbolic link.
func (f *folder) stat(name string) (fs.FileInfo, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, &refusal{"outside_root", fmt.Sprintf("%q must be inside the root of the source; correct the path", cut(name))}
	}
	parts := strings.Split(path.Clean(name), "/")
	for i := range parts {
		info, err := f.root.Lstat(filepath.FromSlash(path.Join(parts[:i+1]...)))
		switch {
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, &refusal{"symbolic_link", fmt.Sprintf("%q must not be a symbolic link; put the file itself there", cut(path.Join(parts[:i+1]...)))}
		case i < len(parts)-1 && !info.IsDir():
			return nil, &refusal{"not_a_folder", fmt.Sprintf("%q must be a folder", cut(path.Join(parts[:i+1]...)))}
		case i == len(parts)-1:
			return info, nil
		}
	}
	return nil, fs.ErrNotExist
}

// open opens a regular file of at most maxBytes. The caller closes it.
func (f *folder) open(name string, maxBytes int64) (*os.File, fs.FileInfo, error) {
	if _, err := f.regular(name, maxBytes); err != nil {
		return nil, nil, err
	}
	// The file may have been replaced since: a FIFO must not block the scan.
	file, err := f.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = checkRegular(name, info, maxBytes)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// regular returns the description of a regular file of at most maxBytes.
func (f *folder) regular(name string, maxBytes int64) (fs.FileInfo, error) {
	info, err := f.stat(name)
	if err != nil {
		return nil, err
	}
	return info, checkRegular(name, info, maxBytes)
}

func checkRegular(name string, info fs.FileInfo, maxBytes int64) error {
	if !info.Mode().IsRegular() {
		return &refusal{"not_regular", fmt.Sprintf("%q must be a regular file, got %s", cut(name), info.Mode().Type())}
	}
	if info.Size() > maxBytes {
		return &refusal{"too_large", fmt.Sprintf("%q must have at most %d bytes, got %d; make it smaller, or raise max_bytes of the source", cut(name), maxBytes, info.Size())}
	}
	return nil
}

// read reads a small file and returns it with its digest, "sha256:" and hexadecimal.
func (f *folder) read(name string, maxBytes int64) (content []byte, digest string, err error) {
	file, _, err := f.open(name, maxBytes)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }()
	content, err = io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && int64(len(content)) > maxBytes {
		err = &refusal{"too_large", fmt.Sprintf("%q must have at most %d bytes", cut(name), maxBytes)}
	}
	if err != nil {
		return nil, "", err
	}
	return content, digestOf(content), nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// list returns the entries of a folder without hidden ones; none if the folder does not exist.
func (f *folder) list(name string) ([]fs.DirEntry, error) {
	info, err := f.stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &refusal{"not_a_folder", fmt.Sprintf("%q must be a folder", cut(name))}
	}
	dir, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	kept := entries[:0]
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			kept = append(kept, entry)
		} else if leftover.MatchString(entry.Name()) {
			f.sweep(path.Join(name, entry.Name()))
		}
	}
	return kept, nil
}

// leftover is the name of a temporary file of this package.
var leftover = regexp.MustCompile(`^\.[a-z0-9_]+(\.state|\.status)?\.json\.[A-Z0-9]{10}\.tmp$`)

// leftoverAge is the age at which a temporary file belongs to a daemon that died.
const leftoverAge = time.Hour

// sweep removes an old temporary file.
func (f *folder) sweep(name string) {
	if info, err := f.stat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge {
		_ = f.remove(name) // the next scan tries again
	}
}

// step runs one step of a write, or fails it for a test.
func (f *folder) step(step, name string, run func() error) error {
	if f.fault != nil {
		if err := f.fault(step, name); err != nil {
			return fmt.Errorf("%s %s: %w", step, name, err)
		}
	}
	if err := run(); err != nil {
		return fmt.Errorf("%s %s: %w", step, name, err)
	}
	return nil
}

// write writes a file: a hidden temporary file, fsync, rename, fsync of the folder. An error leaves the old file.
func (f *folder) write(name string, content []byte) (err error) {
	dir, base := path.Split(name)
	temporary := dir + "." + base + "." + rand.Text()[:10] + temporarySuffix
	var file *os.File
	if err := f.step("create", name, func() (err error) {
		file, err = f.root.OpenFile(filepath.FromSlash(temporary), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		return err
	}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.root.Remove(filepath.FromSlash(temporary)) // it may be renamed already
		}
	}()
	err = f.step("write", name, func() error { _, err := file.Write(content); return err })
	if err == nil {
		err = f.step("sync", name, file.Sync)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	failpoint.Hit(failpoint.FileWritten)
	if err := f.step("rename", name, func() error { return f.root.Rename(filepath.FromSlash(temporary), filepath.FromSlash(name)) }); err != nil {
		return err
	}
	return f.step("sync folder", name, func() error { return f.sync(path.Dir(name)) })
}

// sync makes the names of a folder durable.
func (f *folder) sync(dir string) error {
	opened, err := f.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// move renames a file of a folder.
func (f *folder) move(from, to string) error {
	return f.step("move", from, func() error { return f.root.Rename(filepath.FromSlash(from), filepath.FromSlash(to)) })
}

// remove removes a file if it exists.
func (f *folder) remove(name string) error {
	if err := f.root.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeFolder makes a folder and syncs its parent.
func (f *folder) makeFolder(name string) error {
	if err := f.root.MkdirAll(filepath.FromSlash(name), 0o755); err != nil {
		return err
	}
	return f.sync(path.Dir(name))
}

// cut shortens a name for a message.
func cut(name string) string {
	if len(name) > 200 {
		return strings.ToValidUTF8(name[:200], "") + "…"
	}
	return strings.ToValidUTF8(name, "")
}
