// Package posttest builds the data of queue tests: a workspace, channels, and deliveries in a given
// status. It uses only the public functions, so that gates, counts and events are those of a real
// installation.
//
//	posttest.Workspace(db, "w")
//	posttest.Channel(db, "w", "news", posttest.MaxParallel(3))
//	id := posttest.Delivery(db, "w", "news", autopost.StatusDead)
package posttest

import (
	"encoding/json"
	"fmt"

	"autopost"
	"autopost/internal/testing/pgtest"
)

// Endpoint is the endpoint that Workspace creates, of kind webhook_push. It accepts 1000 items per
// second.
const Endpoint = "in"

// Workspace adds an active workspace with its Endpoint and without channels. Rate groups have no limit but the one
// that a test gives them.
func Workspace(db *pgtest.DB, id string) {
	db.Exec(`update autopost.platforms set group_rps = null where group_rps is not null`)
	db.Exec(`insert into autopost.workspaces (workspace_id) values ($1)`, id)
	db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps)
		values ($1, $2, 'webhook_push', encode(sha256(convert_to($1, 'UTF8')), 'hex'), 1000)`, id, Endpoint)
}

// ChannelOption sets a property of a channel.
type ChannelOption func(*channel)

type channel struct {
	platform    autopost.Platform
	group       string
	rate        *float64
	maxParallel int
}

// Platform sets the platform; the default is Telegram.
func Platform(p autopost.Platform) ChannelOption { return func(c *channel) { c.platform = p } }

// Group sets the rate group; the default is "bot".
func Group(name string) ChannelOption { return func(c *channel) { c.group = name } }

// Rate limits the channel, in messages per second. Without a rate the channel is unlimited.
func Rate(rps float64) ChannelOption { return func(c *channel) { c.rate = &rps } }

// MaxParallel sets how many deliveries the channel may have in flight; the default is 1.
func MaxParallel(n int) ChannelOption { return func(c *channel) { c.maxParallel = n } }

// Channel adds an enabled channel that receives every post.
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

// Delivery enqueues a post for one channel, brings its delivery to the status (queued, sending, sent,
// retry, dead or failed_permanent) and returns the delivery's id. The channel must have free capacity
// and no other due delivery.
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

// Claim claims all due deliveries of the workspace and returns the claim token of one of them.
func Claim(db *pgtest.DB, workspace, delivery string) string {
	return pgtest.Value[string](db, `
		select c.claim_token from autopost.claim_deliveries($1, 'posttest', 1000) c where c.delivery_id = $2::uuid`, workspace, delivery)
}
