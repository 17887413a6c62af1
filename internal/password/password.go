// Package password hashes passwords by argon2id and checks them. Few run at once, because each takes 19 MiB and a
// tenth of a second.
package password

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
)

const (
	// Least is the smallest number of characters of a password.
	Least = 12
	// Most is the largest one.
	Most = 200
	// atOnce bounds the running computations.
	atOnce = 2
)

var parameters = &argon2id.Params{Memory: 19456, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

var running = make(chan struct{}, atOnce)

// unknown is the hash of a random password. Check uses it for people who do not exist, so that the time of the
// answer does not show who exists.
const unknown = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zm9yIHBlb3BsZSB3aG8gZG8gbm90IGV4aXN0ISEhISE"

// Fault returns what is wrong with a new password, or "".
func Fault(password string) string {
	n := utf8.RuneCountInString(password)
	if !utf8.ValidString(password) || n < Least || n > Most {
		return fmt.Sprintf("must have %d to %d characters, got %d", Least, Most, n)
	}
	return ""
}

// Hash returns the encoded argon2id hash of a password.
func Hash(ctx context.Context, password string) (string, error) {
	if err := enter(ctx); err != nil {
		return "", err
	}
	defer func() { <-running }()
	hash, err := argon2id.CreateHash(password, parameters)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// Check reports whether password has this hash. An empty hash never matches, and takes as long.
func Check(ctx context.Context, password, hash string) (bool, error) {
	if err := enter(ctx); err != nil {
		return false, err
	}
	defer func() { <-running }()
	if utf8.RuneCountInString(password) > Most {
		return false, nil
	}
	known := hash != ""
	if !known {
		hash = unknown
	}
	match, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("check a password: %w", err)
	}
	return match && known, nil
}

func enter(ctx context.Context) error {
	select {
	case running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for other passwords: %w", ctx.Err())
	}
}
