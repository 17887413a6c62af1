package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

type credential struct {
	AuthRef    string    `json:"auth_ref" example:"bot"`
	Platform   string    `json:"platform" example:"telegram"`
	KeptIn     string    `json:"kept_in" enum:"env,file,sealed" example:"sealed" doc:"The kind of storage of the secret. The secret is never returned."`
	RotatedAt  instant   `json:"rotated_at" nullable:"true"`
	Channels   int       `json:"channels" example:"3" doc:"Channels that use it."`
	Held       int       `json:"held" doc:"How many of them wait because it was refused."`
	AuthLostAt instant   `json:"auth_lost_at" nullable:"true" doc:"When it was last refused."`
	UpdatedAt  time.Time `json:"updated_at"`
}

func registerCredentials(d *server) {
	listOf[credential](d, "credential", "auth_ref", "credentials", "/credentials", "List credentials with their health")
	rest.Register(d.Server, rest.Operation{
		ID: "requeue-credential", Method: http.MethodPost, Path: "/credentials/{id}/requeue", Summary: "Continue with a restored credential", Answer: changed{}, Example: reasonExample,
		Description: "Channels that wait because the credential was refused continue. Deliveries that failed because of it are requeued, the oldest 1,000 per request.",
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RequeueAuthLost(ctx, a, in.ID)
		})
	})
}
