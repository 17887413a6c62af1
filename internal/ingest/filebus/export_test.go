package filebus

import "context"

// WithFault returns a configuration whose writes fail by fault.
func (c Config) WithFault(fault func(step, name string) error) Config {
	c.fault = fault
	return c
}

// RunOnce is runOnce.
func (s *Stage) RunOnce(ctx context.Context) { s.runOnce(ctx) }
