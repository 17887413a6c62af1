// Package nth is a test only: each stage works against a real database, and simulated
// platforms and receivers, while the n-th of its calls to the database fails, for each n.
package nth
