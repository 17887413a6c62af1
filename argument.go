package autopost

import "fmt"

// ArgumentError is an invalid argument of a database function.
type ArgumentError struct {
	Argument string
	Reason   string
	// Remedy is how to fix it; may be empty.
	Remedy string
}

// Error returns the error in one line.
func (e *ArgumentError) Error() string {
	text := fmt.Sprintf("argument %s: %s", e.Argument, e.Reason)
	if e.Remedy != "" {
		text += fmt.Sprintf(" (%s)", e.Remedy)
	}
	return text
}
