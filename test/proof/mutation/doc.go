// Package mutation tests the tests. It plants bugs in the program's Go code, one at a time, and
// requires that a scenario of a whole installation fails.
package mutation
