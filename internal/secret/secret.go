// Package secret turns the reference of a credential (credential_bindings.secret_ref)
// into the credential itself, and seals the credentials that the database keeps.
// Nothing is kept here: a changed file, key or reference counts from the next call on.
//
// A sealed secret is encrypted by AES-256-GCM with a data key of its own, bound to
// its workspace, credential and version; the data key is wrapped by the master key
// of a file that the database never sees. The file may hold several master keys: the
// first one seals, all of them open.
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

// MaxBytes bounds a credential; a larger file was meant for something else.
const MaxBytes = 64 << 10

// Resolve returns the credential that ref names: env:NAME is an environment
// variable, file:/path a regular file whose trailing line break does not count.
// Errors never repeat a reference of another form, for it may be a credential that
// was put in the wrong column.
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
		return autopost.Secret{}, errors.New("resolve credential: nothing is sealed for it: give it one by autopost credential set or link")
	}
	return autopost.Secret{}, errors.New("resolve credential: the reference is of no known form: use env:NAME or file:/path")
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
	// Looked at before it is opened: opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %w", err)
	}
	if !info.Mode().IsRegular() {
		return autopost.Secret{}, fmt.Errorf("resolve credential: %s is no regular file", path)
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
