package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// leadingDays is the part of a duration in days, with the rest after it.
var leadingDays = regexp.MustCompile(`^(\d{1,5})d(.*)$`)

// duration is the value of a flag like 90s, 2h30m, 2d or 1d12h. A day has 24 hours.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

// Type implements pflag.Value.
func (*duration) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	rest, days := text, 0
	if found := leadingDays.FindStringSubmatch(text); found != nil {
		days, _ = strconv.Atoi(found[1]) // at most five digits
		rest = found[2]
	}
	var within time.Duration
	if rest != "" || days == 0 && rest == text {
		var err error
		if within, err = time.ParseDuration(rest); err != nil {
			return fmt.Errorf("must be a duration, got %q: write 90s, 2h30m or 2d", text)
		}
	}
	*d = duration(time.Duration(days)*24*time.Hour + within)
	return nil
}

// shortDuration formats a duration like 90s, 1h30m or 2d.
func shortDuration(d time.Duration) string {
	if days := d / (24 * time.Hour); days > 0 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", days)
	}
	text := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if shorter := strings.TrimSuffix(text, zero); shorter != "" && (strings.HasSuffix(shorter, "m") || strings.HasSuffix(shorter, "h")) {
			text = shorter
		}
	}
	return text
}

// durationFlag adds a flag for a duration, which may be in days.
func durationFlag(cmd *cobra.Command, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	flag := cmd.Flags().VarPF((*duration)(to), name, "", usage)
	if value == 0 {
		flag.DefValue = "" // the help text names no default
	}
}
