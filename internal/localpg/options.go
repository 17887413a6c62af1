package localpg

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
)

// DefaultMaxConnections is enough for the pools of one daemon, the command line and one psql session.
const DefaultMaxConnections = 50

// Options configure a private PostgreSQL.
type Options struct {
	// Dir is the directory of the instance. It is created, with its parents, if absent. Required.
	Dir string
	// Existing forbids the creation of the instance: Start returns ErrNoCluster if Dir has none.
	Existing bool
	// BinDir is the folder of initdb and postgres. If empty, the machine is searched.
	BinDir string
	// MaxConnections bounds the server's clients; 0 means DefaultMaxConnections. An already running
	// instance keeps its value.
	MaxConnections int
	// Volatile trades crash safety for speed: a crash of the operating system may destroy the data. For
	// temporary databases only.
	Volatile bool
	// Settings are additional settings, as name=value. They override those of this package. An already
	// running instance keeps its values.
	Settings []string
}

func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("private postgres: no directory given")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("private postgres: %w", err)
	}
	o.Dir = dir
	if o.MaxConnections < 0 {
		return o, fmt.Errorf("private postgres: max connections must be positive, got %d", o.MaxConnections)
	}
	o.MaxConnections = cmp.Or(o.MaxConnections, DefaultMaxConnections)
	return o, nil
}
