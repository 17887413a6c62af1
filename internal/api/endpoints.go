package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"autopost/internal/api/rest"
	"autopost/internal/configfile"
)

type endpoint struct {
	EndpointID        string         `json:"endpoint_id" example:"cms"`
	Kind              string         `json:"kind" example:"webhook_push"`
	SourceID          *string        `json:"source_id" nullable:"true"`
	SigningRef        *string        `json:"signing_ref" nullable:"true" doc:"The name of the credential that signs."`
	Enabled           bool           `json:"enabled"`
	IngressRPS        float64        `json:"ingress_rps" example:"5"`
	MaxPayloadBytes   int            `json:"max_payload_bytes" example:"262144"`
	HashDropWindowSec int            `json:"hash_drop_window_sec" example:"10"`
	Moderated         bool           `json:"moderated" example:"false" doc:"A person decides about its posts."`
	HasSecret         bool           `json:"has_secret"`
	Meta              map[string]any `json:"meta"`
	CreatedAt         time.Time      `json:"created_at"`
	UpdatedAt         time.Time      `json:"updated_at"`
}

// secretHash is the field of a new secret.
var secretHash = configfile.Field{Name: "secret_hash", Help: "SHA-256 of the secret in lower-case hexadecimal"}

// rotation are the fields of a new secret or signing key.
func rotation() *huma.Schema {
	reason := changeOf("endpoint").Properties["reason"]
	schema := &huma.Schema{Title: "EndpointRotation", Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{"reason": reason}}
	for _, f := range []configfile.Field{
		secretHash,
		{Name: "new_endpoint_id", Help: "id of the copy with the new secret (default: the id and a number)"},
		{Name: "signing_ref", Help: "name of the credential with the new signing key"},
		{Name: "keep_seconds", Type: configfile.Number, Help: "how long the previous signing key is accepted (default: the setting signing_overlap_hours)"},
	} {
		schema.Properties[f.Name] = valueOf(f)
	}
	return schema
}

func registerEndpoints(d *server) {
	listOf[endpoint](d, "endpoint", "endpoint_id", "endpoints", "/endpoints", "List endpoints, without secrets")
	rest.Register(d.Server, rest.Operation{
		ID: "put-endpoint", Method: http.MethodPatch, Path: "/endpoints/{id}", Summary: "Create or change an endpoint", Answer: put{},
		Change:      changeOf("endpoint", secretHash),
		Example:     map[string]any{"ingress_rps": 10, "reason": "a larger customer"},
		Description: "Changes only the given fields. Creates the endpoint if it does not exist. Send the SHA-256 of a secret (secret_hash), never the secret.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.PutEndpoint(ctx, a, in.ID, fields)
		})
	})
}

func registerEndpointActs(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "disable-endpoint", Method: http.MethodPost, Path: "/endpoints/{id}/disable", Summary: "Disable an endpoint", Answer: put{}, Example: reasonExample,
		Description: "The endpoint refuses requests from now on. Its row stays, and its secret may be used for another endpoint.",
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.DisableEndpoint(ctx, a, in.ID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "rotate-endpoint", Method: http.MethodPost, Path: "/endpoints/{id}/rotate", Summary: "Replace the secret of an endpoint", Answer: put{},
		Change:      rotation(),
		Example:     map[string]any{"secret_hash": strings.Repeat("0123456789abcdef", 4), "reason": "the yearly change"},
		Description: "Without interruption. secret_hash (with new_endpoint_id) creates a copy of the endpoint with the new secret; both accept posts until the old one is disabled. signing_ref (with keep_seconds) replaces the signing key.",
	}, func(ctx context.Context, in *putInput) (rest.Reply, error) {
		return d.patch(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, in.Body, func(ctx context.Context, a rest.OperatorAction, fields any) (rest.Written, error) {
			return d.db.RotateEndpoint(ctx, a, in.ID, fields)
		})
	})
}
