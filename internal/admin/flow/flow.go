// Package flow is the part of the API about what goes through: posts and what
// becomes of them. One file a resource.
package flow

import (
	"time"

	"autopost/internal/admin/door"
)

// Register adds the operations of this package.
func Register(d *door.Door, media Media) {
	registerPosts(d)
	registerPlan(d)
	registerMessages(d)
	registerRuns(d)
	registerDeliveries(d)
	registerDeliveryActs(d)
	registerAfterwards(d)
	registerQueue(d)
	registerEvents(d)
	registerMedia(d, media)
}

// Window bounds a list in time.
type Window struct {
	Since string `query:"since" format:"date-time" doc:"From this instant on, with its offset." example:"2026-12-01T10:00:00Z"`
	Until string `query:"until" format:"date-time" doc:"Before this instant." example:"2026-12-02T10:00:00Z"`
}

// deliveryError is why the last call of a delivery failed.
type deliveryError struct {
	Category     string   `json:"category" enum:"TRANSIENT,PERMANENT" example:"TRANSIENT"`
	Scope        string   `json:"scope" enum:"delivery,channel,platform" example:"delivery"`
	Code         string   `json:"code" example:"http_502"`
	Known        bool     `json:"known" doc:"false where the platform may have taken the post all the same."`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty" example:"5000"`
	Message      string   `json:"message,omitempty" example:"Bad Gateway"`
	Raw          string   `json:"raw,omitempty" doc:"The beginning of the platform's answer."`
	_            struct{} `nullable:"true" additionalProperties:"true"`
}

// instant is a time that may be missing.
type instant = *time.Time
