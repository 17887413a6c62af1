// Package live runs what the benchmark measures from end to end: daemons as processes
// of their own, a platform that they call over HTTP, and a steady load. The platform answers
// as Telegram, MAX and X do and remembers when each call came; it is no judge of what it
// gets, so that it costs little beside what is measured.
package live
