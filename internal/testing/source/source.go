// Package source finds the files of the repository for tests.
package source

import (
	"errors"
	"os"
	"path/filepath"
)

// Root returns the folder of go.mod. It searches upwards from the working directory,
// which is the folder of the package under test.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory: run the tests in the repository")
		}
		dir = parent
	}
}
