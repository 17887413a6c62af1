// Package plants is a test of the tests: it plants bugs in the program's own Go code, one
// at a time, and asks whether the scenarios of a whole house notice.
package plants
