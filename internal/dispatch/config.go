package dispatch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Config bounds the work of a Dispatcher. The zero value of every field means its default.
type Config struct {
	// RunID is the id of this dispatch run in the database. Default: a new UUID.
	RunID string
	// Host is the name of the machine, for alerts about a silent run.
	Host string
	// LimitPerWorkspace bounds one claim (DISPATCHER_LIMIT_PER_WORKSPACE). Default 100.
	LimitPerWorkspace int
	// Senders bounds the deliveries in flight, from the claim to the commit, and so the concurrent calls. Default 512.
	Senders int
	// Poll is the longest pause between two polls, for deliveries and for post changes, if nothing wakes the
	// dispatcher. Default 5 s, which works without wake-ups.
	Poll time.Duration
	// Lease is the length of a new lease (SENDING_LEASE_SECONDS). It must not be longer than the database's, or a
	// call could outlive its lease. Default 300 s.
	Lease time.Duration
	// AdapterTimeout bounds one call, or one step of a delivery with several (ADAPTER_TIMEOUT_MS). It must fit the
	// lease. Default 60 s.
	AdapterTimeout time.Duration
	// Heartbeat is the period of touch_run. Recovery treats a run as dead 45 s after its last one. Default 15 s.
	Heartbeat time.Duration
	// Drain is how long started calls may continue after a stop. Default 30 s.
	Drain time.Duration
}

func (c Config) withDefaults() Config {
	c.LimitPerWorkspace = cmp.Or(c.LimitPerWorkspace, 100)
	c.Senders = cmp.Or(c.Senders, 512)
	c.Poll = cmp.Or(c.Poll, 5*time.Second)
	c.Lease = cmp.Or(c.Lease, 300*time.Second)
	c.AdapterTimeout = cmp.Or(c.AdapterTimeout, 60*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.Drain = cmp.Or(c.Drain, 30*time.Second)
	if c.RunID == "" {
		c.RunID = uuid.NewString()
	}
	return c
}

func (c Config) validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"limit per workspace", int64(c.LimitPerWorkspace)},
		{"senders", int64(c.Senders)},
		{"poll", int64(c.Poll)},
		{"lease", int64(c.Lease)},
		{"adapter timeout", int64(c.AdapterTimeout)},
		{"heartbeat", int64(c.Heartbeat)},
		{"drain", int64(c.Drain)},
	} {
		if f.value < 0 {
			return fmt.Errorf("dispatch config: %s must be positive", f.name)
		}
	}
	if most := c.Lease - c.margin(); c.AdapterTimeout > most {
		return fmt.Errorf("dispatch config: adapter timeout %s does not fit the lease %s: set ADAPTER_TIMEOUT_MS to %d or less",
			c.AdapterTimeout, c.Lease, most.Milliseconds())
	}
	return nil
}

// margin is the part of the lease that a call leaves for the commit.
func (c Config) margin() time.Duration { return min(10*time.Second, c.Lease/10) }
