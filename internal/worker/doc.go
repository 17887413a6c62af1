// Package worker holds the parts that every background worker shares: Loop for periodic work, Batcher for calls
// that are merged, FairShare for capacity, PerKey for one worker per workspace, and Supervisor, which runs all.
package worker
