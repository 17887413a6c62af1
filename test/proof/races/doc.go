// Package races tests functions that run at the same time. Pairs of them
// in every order and stopped at every look at the clock; crowds of workers, posts
// and operators; the same posts by many functions at once; every statement over another
// connection; the whole life of a post under the caller's rights.
//
// go test runs a sample of each, some seconds long, by a seed that it prints and
// that AUTOPOST_SEED repeats; make test-long runs them at their full size.
package races
