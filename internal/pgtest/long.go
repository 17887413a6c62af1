package pgtest

import "os"

// Long tells whether the proofs should run at their full size (make test-long) and
// not as the sample that go test shows: AUTOPOST_LONG=1 says so.
func Long() bool { return os.Getenv("AUTOPOST_LONG") == "1" }
