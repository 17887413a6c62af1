package localpg

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
)

// DefaultMaxConnections leaves room for one daemon's pools, the command line and
// a session of psql.
const DefaultMaxConnections = 50

// Options say where the private PostgreSQL lives and how it runs.
type Options struct {
	// Dir holds everything of this instance. It is made, with its parents, when
	// absent. Required.
	Dir string
	// BinDir is the folder of initdb and postgres. Empty: the machine is searched.
	BinDir string
	// MaxConnections bounds the server's clients; 0 means DefaultMaxConnections.
	// It has no effect when attaching to a running instance.
	MaxConnections int
	// Volatile trades crash safety for speed: an operating-system crash may leave
	// the data unreadable. For throw-away databases only.
	Volatile bool
	// Settings are further ones, as name=value; they win over those of this package.
	// They have no effect when attaching to a running instance.
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
		return o, fmt.Errorf("private postgres: %d connections make no sense", o.MaxConnections)
	}
	o.MaxConnections = cmp.Or(o.MaxConnections, DefaultMaxConnections)
	return o, nil
}
