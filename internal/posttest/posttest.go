// Package posttest builds what a test of the queue is about: a workspace,
// channels, deliveries in a status. All of it goes through the public functions,
// so that gates, counts and events are those of a living system.
//
//	posttest.Workspace(db, "w")
//	posttest.Channel(db, "w", "news", posttest.MaxParallel(3))
//	id := posttest.Delivery(db, "w", "news", autopost.StatusDead)
package posttest

import (
	"encoding/json"
	"fmt"

	"autopost"
	"autopost/internal/pgtest"
)

// Endpoint is the endpoint of kind webhook_push that Workspace makes; it admits
// a thousand items a second.
const Endpoint = "in"

// Workspace adds an active workspace with its Endpoint and no channels.
func Workspace(db *pgtest.DB, id string) {
	db.Exec(`insert into autopost.workspaces (workspace_id) values ($1)`, id)
	db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps)
		values ($1, $2, 'webhook_push', encode(sha256(convert_to($1, 'UTF8')), 'hex'), 1000)`, id, Endpoint)
}

// ChannelOption sets what a test of channels is about.
type ChannelOption func(*channel)

type channel struct {
	platform    autopost.Platform
	group       string
	rate        *float64
	maxParallel int
}

// Platform puts the channel on another platform than Telegram.
func Platform(p autopost.Platform) ChannelOption { return func(c *channel) { c.platform = p } }

// Group puts the channel into another rate group than "bot".
func Group(name string) ChannelOption { return func(c *channel) { c.group = name } }

// Rate limits the channel, in messages a second; without it there is no limit.
func Rate(rps float64) ChannelOption { return func(c *channel) { c.rate = &rps } }

// MaxParallel lets the channel have more in flight than one.
func MaxParallel(n int) ChannelOption { return func(c *channel) { c.maxParallel = n } }

// Channel adds an enabled channel that takes every post.
func Channel(db *pgtest.DB, workspace, id string, options ...ChannelOption) {
	c := channel{platform: autopost.Telegram, group: "bot", maxParallel: 1}
	for _, option := range options {
		option(&c)
	}
	db.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel)
		values ($1, $2, $3, '@' || $2, $4, $4, $5, $6)`, workspace, id, string(c.platform), c.group, c.rate, c.maxParallel)
}

// Post enqueues a text for every channel of the workspace and returns the answer.
func Post(db *pgtest.DB, workspace, text string) map[string]any {
	return db.JSON(`select autopost.enqueue_messages_and_deliveries($1, $2, 'api', jsonb_build_object('text', $3::text))`, workspace, Endpoint, text)
}

// Delivery enqueues a post of its own for one channel, brings its delivery to the
// status (queued, sending, sent, retry, dead or failed_permanent) and returns the
// delivery's id. The channel must have a place in flight, and nothing else due.
func Delivery(db *pgtest.DB, workspace, channel string, status autopost.Status) string {
	id := pgtest.Value[string](db, `
		select autopost.enqueue_messages_and_deliveries($1, $2, 'api', jsonb_build_object('text', 'post ' || gen_random_uuid(),
			'routing', jsonb_build_object('include_channels', jsonb_build_array($3::text)))) -> 'deliveries' -> 0 ->> 'delivery_id'`,
		workspace, Endpoint, channel)
	if status == autopost.StatusQueued {
		return id
	}
	token := Claim(db, workspace, id)
	var failure map[string]any
	switch status {
	case autopost.StatusSending:
		return id
	case autopost.StatusSent:
		db.Exec(`select autopost.mark_sent($1, $2::uuid, $3, 'sent-' || $3, null, null)`, workspace, id, token)
		return id
	case autopost.StatusRetry:
		failure = map[string]any{"category": autopost.Transient, "code": "http_500"}
	case autopost.StatusFailedPermanent:
		failure = map[string]any{"category": autopost.Permanent, "code": "http_400"}
	case autopost.StatusDead:
		db.Exec(`insert into autopost.retry_policies (platform, code, kind, max_attempts) values ('*', 'posttest_dead', 'exponential', 1) on conflict do nothing`)
		failure = map[string]any{"category": autopost.Transient, "code": "posttest_dead"}
	default:
		panic(fmt.Sprintf("posttest: no delivery is brought to %s", status))
	}
	text, err := json.Marshal(map[string]any{"ok": false, "error": failure})
	if err != nil {
		panic(err)
	}
	db.Exec(`select autopost.start_call($1, $2::uuid, $3)`, workspace, id, token)
	db.Exec(`select autopost.commit_outcome($1, $2::uuid, $3, $4::jsonb)`, workspace, id, token, string(text))
	return id
}

// Claim claims what is due in the workspace and returns the token of one delivery.
func Claim(db *pgtest.DB, workspace, delivery string) string {
	return pgtest.Value[string](db, `
		select c.claim_token from autopost.claim_deliveries($1, 'posttest', 1000) c where c.delivery_id = $2::uuid`, workspace, delivery)
}
