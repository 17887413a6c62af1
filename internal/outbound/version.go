package outbound

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Version returns the version of this program: that of its module, or devel if it was built without one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return cmp.Or(strings.Trim(info.Main.Version, "()"), "devel")
}

// userAgent names this program in each request that has no other User-Agent.
var userAgent = "autopost/" + Version()
