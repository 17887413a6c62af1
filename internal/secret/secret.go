// Package secret resolves credential references (credential_bindings.secret_ref) and seals the
// credentials that the database stores.
// Nothing is cached: a changed file, key or reference takes effect at the next call.
//
// A sealed secret is encrypted by AES-256-GCM with its own data key, bound to its workspace, credential
// and version. A master key wraps the data key; the database never has the master key. The file may
// contain several master keys: the first seals, all of them open.
package secret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"autopost"
)

// MaxBytes is the maximum size of a credential, in bytes.
const MaxBytes = 64 << 10

// Resolve returns the credential of ref: env:NAME is an environment variable, file:/path a regular file
// without its final line break. An error never repeats a reference of another form, because it may be a
// credential in the wrong column.
func Resolve(ref string) (autopost.Secret, error) {
	scheme, rest, ok := strings.Cut(ref, ":")
	if !ok {
		scheme = ""
	}
	switch scheme {
	case "env":
		return fromEnvironment(rest)
	case "file":
		return fromFile(rest)
	case "sealed":
		return autopost.Secret{}, errors.New("resolve credential: no secret is stored: set it with autopost credential set or link")
	}
	return autopost.Secret{}, errors.New("resolve credential: the reference has an unknown form: use env:NAME or file:/path")
}

func fromEnvironment(name string) (autopost.Secret, error) {
	value := os.Getenv(name)
	if value == "" {
		return autopost.Secret{}, fmt.Errorf("resolve credential: the environment variable %q is not set", name)
	}
	return autopost.NewSecret(value), nil
}

func fromFile(path string) (autopost.Secret, error) {
	if !filepath.IsAbs(path) {
		return autopost.Secret{}, fmt.Errorf("resolve credential: file:%s: the path must be absolute", path)
	}
	// Check the type first: opening a pipe waits for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %w", err)
	}
	if !info.Mode().IsRegular() {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %w", err)
	}
	if len(text) > MaxBytes {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %s is larger than %d bytes", path, MaxBytes)
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %s is empty", path)
	}
	return autopost.NewSecret(value), nil
}
