// Package properties drives the SQL functions by random commands over several channels
// and posts, under a clock of its own, and holds them to what a user was promised,
// reckoned here from the answers and the rows alone. What fails is made small and kept
// as a contract in db/tests. It holds tests only.
package properties
