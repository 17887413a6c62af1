// Package arch is a test only. It reads the source of the whole repository and
// holds it to the house rules that a compiler does not know: who may import whom
// and why not, how long files may get, and what tests must not do.
package arch
