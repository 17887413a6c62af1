// Package live runs what the benchmark measures from end to end: daemons as processes
// of their own, and a platform that they call over HTTP. The platform answers as
// Telegram does and remembers when each call came; it is no judge of what it gets,
// so that it costs little beside what is measured.
package live
