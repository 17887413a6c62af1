package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

// Daemon is a daemon with a heartbeat in the last day.
type Daemon struct {
	RunID  string    `json:"run_id" example:"host-1-0199c6a0" doc:"The dispatch run of the daemon."`
	SeenAt time.Time `json:"seen_at" doc:"The last heartbeat."`
	Alive  bool      `json:"alive" doc:"Whether its heartbeat is recent and its run has not ended."`
	// Config and SkewMS are nil without a monitor.
	Config  *string  `json:"config" nullable:"true" doc:"A digest of its configuration; null without a monitor. Daemons that disagree differ in it."`
	SkewMS  *int64   `json:"skew_ms" nullable:"true" doc:"The lead of its clock over that of the database, in milliseconds; null without a monitor."`
	Failing []string `json:"failing" nullable:"false" doc:"Its duties that fail."`
}

type daemonList struct {
	Items []Daemon `json:"items" nullable:"false" doc:"The daemons, latest first."`
}

func registerDaemons(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-daemons", Method: http.MethodGet, Path: "/daemons", Summary: "List the daemons of the installation", Answer: daemonList{},
		Description: "Up to 100 daemons with a heartbeat in the last day. Only a session of an owner of the installation sees them.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "", func(ctx context.Context, _ string) (json.RawMessage, error) {
			daemons, err := d.db.ListDaemons(ctx)
			return encoded(daemonList{daemons}, err)
		})
	})
}
