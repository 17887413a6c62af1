package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoMasterKey means that the master key file does not exist.
var ErrNoMasterKey = errors.New("there is no master key")

// ErrExposed means that users other than the owner can read the master key file.
var ErrExposed = errors.New("can be read by others")

const keyBytes = 32

// Keyring is the master key file: one key per line, in base64. Each use reads the file again, so a new
// key takes effect at once in all daemons that share it.
type Keyring struct{ path string }

// NewKeyring returns the keyring of a file. It does not access the file.
func NewKeyring(path string) *Keyring { return &Keyring{path: path} }

// masterKey is one key of the file.
type masterKey struct {
	id  string
	key []byte
}

// keyOf computes the id of a key: a digest, which does not reveal the key.
func keyOf(key []byte) masterKey {
	sum := sha256.Sum256(append([]byte("autopost master key "), key...))
	return masterKey{id: hex.EncodeToString(sum[:8]), key: key}
}

// IDs returns the ids of all keys. The first one seals. The error is ErrNoMasterKey if the file does
// not exist.
func (r *Keyring) IDs() ([]string, error) {
	keys, err := r.keys()
	ids := make([]string, 0, len(keys))
	for _, key := range keys {
		ids = append(ids, key.id)
	}
	return ids, err
}

func (r *Keyring) keys() ([]masterKey, error) {
	info, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoMasterKey, r.path)
	}
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("master key: %s is not a regular file", r.path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("master key: %s %w (mode %04o): chmod 600 it", r.path, ErrExposed, info.Mode().Perm())
	}
	text, err := os.ReadFile(r.path)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	var keys []masterKey
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("master key: line %d of %s is not a key: a key is %d bytes in base64 (openssl rand -base64 %d)", n+1, r.path, keyBytes, keyBytes)
		}
		keys = append(keys, keyOf(key))
	}
	return keys, nil
}

func (r *Keyring) find(id string) (masterKey, error) {
	keys, err := r.keys()
	if err != nil {
		return masterKey{}, err
	}
	i := slices.IndexFunc(keys, func(k masterKey) bool { return k.id == id })
	if i < 0 {
		return masterKey{}, fmt.Errorf("master key: it is sealed under the key %s, which %s does not hold: put that key back on its own line; "+
			"if it is lost, set the credential again with autopost credential set or link", id, r.path)
	}
	return keys[i], nil
}

// Make creates the file with its first key. If several callers make it at once, one of them succeeds
// and the others do nothing.
func (r *Keyring) Make() error {
	if err := r.replace([]masterKey{newKey()}, true); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Renew adds a new first key, which seals from now on. It creates the file if needed. Callers must not
// run concurrently.
func (r *Keyring) Renew() error {
	keys, err := r.keys()
	if err != nil && !errors.Is(err, ErrNoMasterKey) {
		return err
	}
	return r.replace(append([]masterKey{newKey()}, keys...), false)
}

// Drop removes all keys except the first. Data keys that the removed keys wrap can no longer be opened.
func (r *Keyring) Drop() (dropped int, err error) {
	keys, err := r.keys()
	if err != nil || len(keys) == 1 {
		return 0, err
	}
	return len(keys) - 1, r.replace(keys[:1], false)
}

func newKey() masterKey {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return keyOf(key)
}

// replace writes the file atomically. With fresh it keeps an existing file.
func (r *Keyring) replace(keys []masterKey, fresh bool) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("master key: %w", err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(r.path), ".master-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	var text strings.Builder
	for _, key := range keys {
		fmt.Fprintln(&text, base64.StdEncoding.EncodeToString(key.key))
	}
	_, err = file.WriteString(text.String())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if fresh {
		return os.Link(file.Name(), r.path)
	}
	return os.Rename(file.Name(), r.path)
}
