package flow

import (
	"context"
	"net/http"

	"autopost/internal/admin/door"
)

// someDeliveries names deliveries and says why.
type someDeliveries struct {
	DeliveryIDs []string `json:"delivery_ids" minItems:"1" maxItems:"1000" nullable:"false" format:"uuid" doc:"At most 1,000."`
	door.Reasoned
}

type deliveriesActInput struct {
	door.Act
	door.Dry
	Body someDeliveries
}

// acted is what became of deliveries.
type acted struct {
	Applied  bool     `json:"applied" doc:"Whether any was changed, or would be."`
	DryRun   bool     `json:"dry_run,omitempty"`
	Requeued int      `json:"requeued,omitempty" example:"1"`
	Skipped  int      `json:"skipped,omitempty" example:"1"`
	Results  []result `json:"results,omitempty" nullable:"false" doc:"In the order of the ids, each once."`
	_        struct{} `additionalProperties:"true"`
}

type result struct {
	DeliveryID string   `json:"delivery_id" format:"uuid"`
	Applied    bool     `json:"applied,omitempty"`
	Reason     string   `json:"reason,omitempty" example:"not_failed"`
	_          struct{} `additionalProperties:"true"`
}

type resolveInput struct {
	door.Act
	DeliveryPath
	Body struct {
		Verdict           string `json:"verdict" enum:"found,absent" example:"found" doc:"Whether the post stands in the channel."`
		ProviderMessageID string `json:"provider_message_id,omitempty" example:"4711" doc:"Its id there; required where it was found."`
		door.Reasoned
	}
}

type releaseInput struct {
	door.Act
	door.Dry
	Body struct {
		OlderThanSeconds int `json:"older_than_seconds" minimum:"600" maximum:"2592000" example:"900"`
		door.Reasoned
	}
}

func registerDeliveryActs(d *door.Door) {
	example := map[string]any{"delivery_ids": []string{"0199c6a0-0000-7000-8000-000000000000"}, "reason": "the channel is back"}
	door.Register(d, door.Operation{
		ID: "requeue-deliveries", Method: http.MethodPost, Path: "/deliveries/requeue", Summary: "Put failed deliveries back", Answer: acted{}, Example: example,
		Description: "Dead or failed deliveries go into the queue again, with one attempt more. What the channel got meanwhile stays where it is.",
	}, func(ctx context.Context, in *deliveriesActInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "manual_requeue", Reason: in.Body.Reason, DryRun: in.DryRun, Args: map[string]any{"delivery_ids": in.Body.DeliveryIDs}})
	})
	door.Register(d, door.Operation{
		ID: "skip-deliveries", Method: http.MethodPost, Path: "/deliveries/skip", Summary: "End waiting deliveries unsent", Answer: acted{}, Example: example,
		Description: "Deliveries that wait are dead at once; a requeue brings them back.",
	}, func(ctx context.Context, in *deliveriesActInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "skip_deliveries", Reason: in.Body.Reason, DryRun: in.DryRun, Args: map[string]any{"delivery_ids": in.Body.DeliveryIDs}})
	})
	door.Register(d, door.Operation{
		ID: "resolve-delivery", Method: http.MethodPost, Path: "/deliveries/{delivery_id}/resolve", Summary: "Say what became of an unknown outcome", Answer: acted{},
		Example:     map[string]any{"verdict": "found", "provider_message_id": "4711", "reason": "seen in the channel"},
		Description: "For a delivery that waits because nobody knows whether the platform took it.",
	}, func(ctx context.Context, in *resolveInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "resolve_unknown", Reason: in.Body.Reason, Args: map[string]any{
			"delivery_id": in.DeliveryID, "verdict": in.Body.Verdict, "provider_message_id": in.Body.ProviderMessageID}})
	})
	door.Register(d, door.Operation{
		ID: "release-stale", Method: http.MethodPost, Path: "/deliveries/release-stale", Summary: "End claims that hang", Answer: acted{},
		Example:     map[string]any{"older_than_seconds": 900, "reason": "a daemon died"},
		Description: "Claims that are older go back; a call that had begun is an unknown outcome.",
	}, func(ctx context.Context, in *releaseInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "release_stale", Reason: in.Body.Reason, DryRun: in.DryRun, Args: map[string]any{"older_than_seconds": in.Body.OlderThanSeconds}})
	})
}
