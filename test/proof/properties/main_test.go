package properties

import (
	"flag"
	"os"
	"testing"
)

// TestMain sets the size of the samples; AUTOPOST_LONG asks for the full size, and
// -rapid.checks and -rapid.steps for any other.
func TestMain(m *testing.M) {
	sizes := map[string]string{"rapid.checks": "16", "rapid.steps": "40", "rapid.seed": "1", "rapid.nofailfile": "true", "rapid.shrinktime": "20s"}
	if os.Getenv("AUTOPOST_LONG") != "" {
		sizes["rapid.checks"], sizes["rapid.steps"], sizes["rapid.seed"] = "400", "80", "0"
	}
	for name, value := range sizes {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
