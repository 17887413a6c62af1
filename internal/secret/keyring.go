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

// ErrNoMasterKey says that the file of the master key is not there.
var ErrNoMasterKey = errors.New("there is no master key")

// ErrExposed says that others than its owner can read the file of the master key.
var ErrExposed = errors.New("can be read by others")

const keyBytes = 32

// Keyring is the file of the master keys: a line each, in base64. It is read anew
// for every use, so that a new key counts at once in all daemons that share it.
type Keyring struct{ path string }

// NewKeyring is without effect; the file need not be there.
func NewKeyring(path string) *Keyring { return &Keyring{path: path} }

// masterKey is one key of the ring.
type masterKey struct {
	id  string
	key []byte
}

// keyOf names a key by its digest, which tells nothing of it.
func keyOf(key []byte) masterKey {
	sum := sha256.Sum256(append([]byte("autopost master key "), key...))
	return masterKey{id: hex.EncodeToString(sum[:8]), key: key}
}

// IDs names the keys of the file, the one that seals first. The error is
// ErrNoMasterKey when there is no file.
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
		return nil, fmt.Errorf("master key: %s is no regular file", r.path)
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
			return nil, fmt.Errorf("master key: line %d of %s is no key: a key is %d bytes in base64 (openssl rand -base64 %d)", n+1, r.path, keyBytes, keyBytes)
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
		return masterKey{}, fmt.Errorf("master key: it is sealed under the key %s, which %s does not hold: put that key back as a line of its own; "+
			"if it is lost, give the credential anew by autopost credential set or link", id, r.path)
	}
	return keys[i], nil
}

// Make makes the file with a first key. Of several who make it at once, one wins.
func (r *Keyring) Make() error {
	if err := r.replace([]masterKey{newKey()}, true); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Renew puts a new key in front of the others; it seals from now on. It makes the
// file if there is none. The caller is alone.
func (r *Keyring) Renew() error {
	keys, err := r.keys()
	if err != nil && !errors.Is(err, ErrNoMasterKey) {
		return err
	}
	return r.replace(append([]masterKey{newKey()}, keys...), false)
}

// Drop takes all keys but the first out of the file; what they wrap can be opened no more.
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

// replace writes the file whole or not at all; fresh refuses to replace one that is there.
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
