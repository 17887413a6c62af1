// Package citus runs the program on a real Citus cluster: a coordinator and two workers on this machine. make test-citus
// starts it. The tests have the build tag citus.
package citus
