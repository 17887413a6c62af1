package model

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// person adds operator actions to a configuration.
func person(c Config, requeues, absents uint8) Config {
	c.Requeues, c.Absents, c.Skips = requeues, absents, true
	return c
}

// one is a delivery with its retries, three workers, a pause and a release.
func one(policy Policy) Config {
	return Config{Deliveries: 1, Workers: 3, MaxAttempts: 3, MaxParallel: 1, Policy: policy, Pauses: 1, Releases: 1}
}

// pair is two deliveries of a channel that sends one at a time.
func pair(policy Policy) Config {
	return Config{Deliveries: 2, Workers: 2, MaxAttempts: 2, MaxParallel: 1, Policy: policy}
}

// lean is one delivery and two workers, so that operator actions fit into the state space.
func lean(policy Policy) Config {
	return Config{Deliveries: 1, Workers: 2, MaxAttempts: 3, MaxParallel: 1, Policy: policy}
}

func late(c Config) Config {
	c.Late = true
	return c
}

func fused(c Config) Config {
	c.Fused = true
	return c
}

type exploration struct {
	name   string
	config Config
	copies uint8 // exactly so many are reached
}

var explorations = []exploration{
	{"reconcile", one(Reconcile), 2},
	{"hold", one(Hold), 1},
	{"resend", lean(Resend), 3},
	{"two deliveries, reconcile", pair(Reconcile), 2},
	{"two deliveries, hold", pair(Hold), 1},
	{"calls that start with their claim, reconcile", fused(lean(Reconcile)), 2},
	{"calls that start with their claim, hold", fused(lean(Hold)), 1},
	{"late calls, reconcile", late(lean(Reconcile)), 2},
	{"late calls, hold", late(lean(Hold)), 1},
	{"limits that cost no attempt", with(lean(Reconcile), func(c *Config) { c.Limits = 2 }), 2},
	{"moves, reconcile", with(lean(Reconcile), func(c *Config) { c.Moves, c.Skips = true, true }), 2},
	{"moves of two deliveries, hold", with(pair(Hold), func(c *Config) { c.Moves = true }), 1},
	{"people, reconcile", person(lean(Reconcile), 1, 1), 4},
	{"people, hold", person(lean(Hold), 1, 1), 3},
	{"people who only look wrong, reconcile", person(lean(Reconcile), 0, 2), 2},
	{"people who only look wrong, hold", person(lean(Hold), 0, 2), 3},
	{"people who only requeue, hold", person(lean(Hold), 1, 0), 2},
}

// long are larger models with all of it at once: tens of millions of states.
var long = []exploration{
	{"all, reconcile", person(one(Reconcile), 1, 1), 4},
	{"all, hold", person(one(Hold), 1, 1), 3},
	{"people, resend", person(lean(Resend), 1, 1), 4},
	{"two requeues, reconcile", with(person(lean(Reconcile), 2, 1), attempts(4)), 6},
	{"two requeues, hold", person(lean(Hold), 2, 1), 4},
	{"two deliveries, three workers", Config{Deliveries: 2, Workers: 3, MaxAttempts: 2, MaxParallel: 1}, 2},
	{"two deliveries, a pause", Config{Deliveries: 2, Workers: 2, MaxAttempts: 2, MaxParallel: 1, Pauses: 1}, 2},
	{"late calls, people, reconcile", late(person(lean(Reconcile), 1, 1)), 4},
	{"late calls that start with their claim, reconcile", late(fused(lean(Reconcile))), 2},
	{"late calls, people, hold", late(person(lean(Hold), 1, 1)), 3},
}

func TestEveryStateKeepsThePromises(t *testing.T) {
	t.Parallel()
	all := explorations
	if os.Getenv("AUTOPOST_LONG") != "" {
		all = append(slices.Clone(all), long...)
	}
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			report := e.config.Explore()
			t.Log(report)
			for what, way := range report.Violations {
				t.Errorf("%s:\n%s", what, way)
			}
			require.Equal(t, e.copies, report.Copies, "the largest number of copies")
			if !e.config.Late {
				require.Zero(t, report.AfterTheEnd)
			}
		})
	}
}

// A process that was stopped for longer than its lease may still make its recorded call, even for a final delivery: no
// database can prevent it. The bound of copies holds, because each recorded call sends at most once.
func TestLateCallsComeAfterTheEnd(t *testing.T) {
	t.Parallel()
	require.Positive(t, late(lean(Reconcile)).Explore().AfterTheEnd)
}

// The explorer finds each planted bug as the right violation.
func TestPlantedMistakesAreSeen(t *testing.T) {
	t.Parallel()
	bugs := []struct {
		bug    Bug
		config Config
		shows  string
	}{
		{StartedIsNotSent, lean(Reconcile), "more copies than the policy allows"},
		{StartedIsNotSent, lean(Hold), "more copies than the policy allows"},
		{TokenUnchecked, with(lean(Reconcile), attempts(4)), "more copies than the policy allows"},
		{TokenUnchecked, lean(Hold), "more copies than the policy allows"},
		{StartUnchecked, lean(Reconcile), "a request without a claim and a recorded call"},
		{StartUnchecked, lean(Hold), "more copies than the policy allows"},
		{UnknownUncounted, lean(Reconcile), "more copies than the policy allows"},
		{UnknownUncounted, lean(Hold), "ended without a record of a possible copy"},
		{UnknownUncounted, lean(Resend), "a copy that follows no recorded unknown outcome"},
		{CallForgotten, fused(lean(Reconcile)), "a copy that follows no recorded unknown outcome"},
		{CallForgotten, fused(lean(Hold)), "more copies than the policy allows"},
		{AllowanceIgnored, lean(Reconcile), "more copies than the policy allows"},
		{HoldIgnored, lean(Hold), "more copies than the policy allows"},
		{StartedIsReleased, with(lean(Hold), func(c *Config) { c.Releases = 1 }), "more copies than the policy allows"},
		{SettledReopened, lean(Reconcile), "a final status changes without an operator"},
		{SettledReopened, with(lean(Reconcile), attempts(4)), "more copies than the policy allows"},
		{RoomIgnored, pair(Hold), "more in flight than max_parallel"},
		{PauseIgnored, with(lean(Hold), func(c *Config) { c.Pauses = 1 }), "a call begins while its channel is shut"},
		{AttemptsIgnored, lean(Resend), "more attempts than granted"},
		{AttemptsIgnored, lean(Resend), "more copies than the policy allows"},
		{NothingRecovered, lean(Reconcile), "a delivery that nothing brings to its end"},
		{UnknownIsDead, lean(Reconcile), "ended without a record of a possible copy"},
	}
	for _, b := range bugs {
		t.Run(fmt.Sprintf("%s, %s: %s", b.config.Policy, b.bug, b.shows), func(t *testing.T) {
			b.config.Bug = b.bug
			report := b.config.Explore()
			require.Contains(t, slices.Collect(maps.Keys(report.Violations)), b.shows)
			t.Logf("%s\n%s", report, report.Violations[b.shows])
		})
	}
}

func with(c Config, change func(*Config)) Config {
	change(&c)
	return c
}

func attempts(n uint8) func(*Config) { return func(c *Config) { c.MaxAttempts = n } }
