//go:build unix && !linux

package pgtest

// fastFolder returns the folder for the data of servers: "", the temporary directory.
func fastFolder() string { return "" }
