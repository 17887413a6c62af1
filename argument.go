package autopost

import "fmt"

// ArgumentError says which argument of a function was wrong, why, and what to do about it.
type ArgumentError struct {
	Argument string
	Reason   string
	// Remedy is empty when there is none to tell.
	Remedy string
}

// Error says it in one line.
func (e *ArgumentError) Error() string {
	text := fmt.Sprintf("argument %s: %s", e.Argument, e.Reason)
	if e.Remedy != "" {
		text += fmt.Sprintf(" (%s)", e.Remedy)
	}
	return text
}
