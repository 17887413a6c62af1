// Package arch tests the source of the repository for rules that the compiler does not
// know: import rules, file lengths, habits of tests and the language of the prose.
package arch
