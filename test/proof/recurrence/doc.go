// Package recurrence proves that autopost expands recurrence rules as RFC 5545 says: against libical for the dates, and
// against the C library for the instants of a time zone.
package recurrence
