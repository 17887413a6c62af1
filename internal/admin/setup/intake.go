package setup

import (
	"context"
	"net/http"
	"strings"
	"time"

	"autopost/internal/admin/door"
)

type endpoint struct {
	EndpointID        string         `json:"endpoint_id" example:"cms"`
	Kind              string         `json:"kind" example:"webhook_push"`
	SourceID          *string        `json:"source_id" nullable:"true"`
	SigningRef        *string        `json:"signing_ref" nullable:"true" doc:"The credential that signs, by its name."`
	Enabled           bool           `json:"enabled"`
	IngressRPS        float64        `json:"ingress_rps" example:"5"`
	MaxPayloadBytes   int            `json:"max_payload_bytes" example:"262144"`
	HashDropWindowSec int            `json:"hash_drop_window_sec" example:"10"`
	Moderated         bool           `json:"moderated" example:"false" doc:"False: posts cannot wait for a decision yet."`
	HasSecret         bool           `json:"has_secret"`
	Meta              map[string]any `json:"meta"`
	CreatedAt         time.Time      `json:"created_at"`
	UpdatedAt         time.Time      `json:"updated_at"`
}

func registerEndpoints(d *door.Door) {
	listOf[endpoint](d, "endpoint", "endpoint_id", "endpoints", "/endpoints", "Endpoints, without their secrets")
	door.Register(d, door.Operation{
		ID: "put-endpoint", Method: http.MethodPatch, Path: "/endpoints/{id}", Summary: "Make or change an endpoint", Answer: put{},
		Example:     map[string]any{"ingress_rps": 10, "reason": "a larger customer"},
		Description: "Changes only what the body names; makes the endpoint where there is none. A secret is given by its SHA-256 (secret_hash), never itself.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_endpoint", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
}

func registerEndpointActs(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "disable-endpoint", Method: http.MethodPost, Path: "/endpoints/{id}/disable", Summary: "Disable an endpoint", Answer: put{}, Example: reasonExample,
		Description: "It takes nothing from now on; its row stays for the record, and its secret is free for another.",
	}, func(ctx context.Context, in *actInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "disable_endpoint", Reason: why(in.Body), DryRun: in.DryRun, Args: map[string]any{"id": in.ID}})
	})
	door.Register(d, door.Operation{
		ID: "rotate-endpoint", Method: http.MethodPost, Path: "/endpoints/{id}/rotate", Summary: "Give an endpoint another secret", Answer: put{},
		Example:     map[string]any{"secret_hash": strings.Repeat("0123456789abcdef", 4), "reason": "the yearly change"},
		Description: "Without a gap. secret_hash (with new_endpoint_id) makes a copy of the endpoint that has the new secret, and both take posts until the old one is disabled; signing_ref (with keep_seconds) changes the key of a signed one.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "rotate_endpoint", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
}

type source struct {
	SourceID   string         `json:"source_id" example:"blog"`
	Kind       string         `json:"kind" example:"rss"`
	Config     map[string]any `json:"config_json" doc:"What looks like a secret is masked."`
	Enabled    bool           `json:"enabled"`
	PolledAt   instant        `json:"polled_at" nullable:"true"`
	NextPollAt instant        `json:"next_poll_at" nullable:"true"`
	Failures   int            `json:"failures" doc:"In a row."`
	LastError  map[string]any `json:"last_error" nullable:"true"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
}

func registerSources(d *door.Door) {
	listOf[source](d, "source", "source_id", "sources", "/sources", "Sources that are polled")
	door.Register(d, door.Operation{
		ID: "put-source", Method: http.MethodPatch, Path: "/sources/{id}", Summary: "Make or change a source", Answer: put{},
		Example:     map[string]any{"kind": "rss", "config_json": map[string]any{"url": "https://example.org/feed"}, "reason": "a new blog"},
		Description: "Changes only what the body names; makes the source where there is none.",
	}, func(ctx context.Context, in *putInput) (door.Reply, error) {
		return patch(ctx, d, in.Act, door.Write{Function: "put_source", DryRun: in.DryRun, Args: map[string]any{"id": in.ID}}, in.Body)
	})
}
