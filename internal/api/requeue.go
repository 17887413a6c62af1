package api

import (
	"context"
	"net/http"
	"time"

	"autopost/internal/api/rest"
)

// someDeliveries selects deliveries and contains the reason.
type someDeliveries struct {
	DeliveryIDs []string `json:"delivery_ids" minItems:"1" maxItems:"1000" nullable:"false" format:"uuid" doc:"The ids of the deliveries."`
	rest.Reasoned
}

type deliveriesActInput struct {
	rest.AuditedWrite
	rest.Dry
	Body someDeliveries
}

// acted is the answer to a manual change of deliveries.
type acted struct {
	Applied  bool     `json:"applied" doc:"true if a delivery was changed, or would be in a dry run."`
	DryRun   bool     `json:"dry_run,omitempty"`
	Requeued int      `json:"requeued,omitempty" example:"1"`
	Skipped  int      `json:"skipped,omitempty" example:"1"`
	Waiting  int      `json:"waiting,omitempty" doc:"Deliveries of the post that a further call skips."`
	Results  []result `json:"results,omitempty" nullable:"false" doc:"One row per id, in the order of the ids."`
	_        struct{} `additionalProperties:"true"`
}

type result struct {
	DeliveryID string   `json:"delivery_id" format:"uuid"`
	Applied    bool     `json:"applied,omitempty"`
	Reason     string   `json:"reason,omitempty" example:"not_failed"`
	Before     string   `json:"before,omitempty" example:"dead" doc:"The status before."`
	After      string   `json:"after,omitempty" example:"retry" doc:"The status afterwards, if it changed."`
	_          struct{} `additionalProperties:"true"`
}

type skipPostInput struct {
	rest.AuditedWrite
	rest.Dry
	MessageID string `path:"message_id" format:"uuid" doc:"The message_id in the answer to an enqueue."`
	Body      struct {
		rest.Reasoned
	}
}

type resolveInput struct {
	rest.AuditedWrite
	DeliveryPath
	Body struct {
		Verdict           string `json:"verdict" enum:"found,absent" example:"found" doc:"found: the post is in the channel. absent: it is not."`
		ProviderMessageID string `json:"provider_message_id,omitempty" example:"4711" doc:"The id of the message at the platform; required for found."`
		rest.Reasoned
	}
}

type releaseInput struct {
	rest.AuditedWrite
	rest.Dry
	Body struct {
		OlderThanSeconds int `json:"older_than_seconds" minimum:"600" maximum:"2592000" example:"900"`
		rest.Reasoned
	}
}

func registerDeliveryActs(d *server) {
	example := map[string]any{"delivery_ids": []string{"0199c6a0-0000-7000-8000-000000000000"}, "reason": "the channel is back"}
	rest.Register(d.Server, rest.Operation{
		ID: "requeue-deliveries", Method: http.MethodPost, Path: "/deliveries/requeue", Summary: "Requeue failed deliveries", Answer: acted{}, Example: example,
		Description: "Dead or failed deliveries become queued again with one more attempt. Messages that the channel got meanwhile stay.",
	}, func(ctx context.Context, in *deliveriesActInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.ManualRequeue(ctx, a, in.Body.DeliveryIDs)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "skip-deliveries", Method: http.MethodPost, Path: "/deliveries/skip", Summary: "Skip waiting deliveries", Answer: acted{}, Example: example,
		Description: "Waiting deliveries become dead at once and are not sent. A requeue reverts this.",
	}, func(ctx context.Context, in *deliveriesActInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.SkipDeliveries(ctx, a, in.Body.DeliveryIDs)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "skip-post", Method: http.MethodPost, Path: "/posts/{message_id}/skip", Summary: "Skip a post in all channels where it waits", Answer: acted{},
		Example:     map[string]any{"reason": "outdated"},
		Description: "Its waiting deliveries become dead at once, at most 1,000 per call. Repeat the call while waiting is not 0.",
	}, func(ctx context.Context, in *skipPostInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.MessageID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.SkipPost(ctx, a, in.MessageID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "resolve-delivery", Method: http.MethodPost, Path: "/deliveries/{delivery_id}/resolve", Summary: "Resolve an unknown outcome", Answer: acted{},
		Example:     map[string]any{"verdict": "found", "provider_message_id": "4711", "reason": "seen in the channel"},
		Description: "For a delivery that waits because the platform may or may not have published it.",
	}, func(ctx context.Context, in *resolveInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, Subject: in.DeliveryID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.ResolveUnknown(ctx, a, in.DeliveryID, in.Body.Verdict, in.Body.ProviderMessageID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "release-stale", Method: http.MethodPost, Path: "/deliveries/release-stale", Summary: "Release stale claims", Answer: acted{},
		Example:     map[string]any{"older_than_seconds": 900, "reason": "a daemon died"},
		Description: "Releases older claims. A call that had started becomes an unknown outcome.",
	}, func(ctx context.Context, in *releaseInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.ReleaseStale(ctx, a, time.Duration(in.Body.OlderThanSeconds)*time.Second)
		})
	})
}
