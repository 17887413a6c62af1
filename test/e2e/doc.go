// Package e2e tests the real binary from its endpoints to the simulated platforms. Each post arrives
// once and in time, or is refused with a reason.
package e2e
