//go:build failpoint

package main

import (
	"os"

	"autopost/internal/failpoint"
)

// The tag is on this file alone, so that the two programs of the tests share all compiled packages.
func init() { failpoint.Arm(os.Getenv("AUTOPOST_FAILPOINT")) }
