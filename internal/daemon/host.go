package daemon

import (
	"os"
	"os/user"
	"strings"
)

// Operator returns LOGIN@HOST of this process; "" if the login is unknown.
func Operator() string {
	current, err := user.Current()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(current.Username+"@"+Hostname(), "@")
}

// Hostname returns the first part of this machine's name; "" if it is unknown. Events would mask a full one.
func Hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	host, _, _ = strings.Cut(host, ".")
	return host
}
