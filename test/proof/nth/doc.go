// Package nth is a test only: the dispatcher works against a real database and a
// simulated platform while the n-th of its calls to the database fails, for each n.
package nth
