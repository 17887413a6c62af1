// Package live runs the parts of an end-to-end benchmark: daemons as separate processes, a
// platform that they call over HTTP, and a steady load. The platform answers like Telegram,
// MAX and X and records the time of each call. It checks nothing, so that it costs little.
package live
