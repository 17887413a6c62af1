package main

import (
	"fmt"
	"strings"
)

// actions are the actions of events in the order of a post's life. A test compares them
// with the constraint of the table.
var actions = [][2]string{
	{"ingress_rate_limited", "Requests came faster than the `ingress_rps` of the endpoint. One event counts many requests."},
	{"ingress_payload_rejected", "A post was rejected (field, reason, source_ref), or requests were larger than the endpoint allows. One event counts many."},
	{"ingress_dedup_dropped", "A push repeated a `source_ref`, or recent content without one. It got the answer of the first push."},
	{"ingress_config_error", "A source could not be polled, or it moved. `error` names the setting to correct."},
	{"submission_failed", "The media of a post could not be fetched. The post is given up."},
	{"submission_pending", "A moderated post waits for a decision about `meta.digest`."},
	{"submission_edited", "A person changed a post that waits for a decision. Earlier approvals are void."},
	{"submission_approved", "A person approved a post: `meta.operator`, `meta.source`."},
	{"submission_rejected", "A person rejected a post: `meta.operator`, `meta.reason`."},
	{"submission_expired", "No person decided about a post in `submission_expire_hours`."},
	{"submission_skipped", "A domain event does not become a post: `meta.reason`."},
	{"occurrence_skipped", "An occurrence of a post that repeats did not become a post: `meta.cause` is missed, paused, person or rejected; `error` says why it was rejected."},
	{"approval_refused", "An approval was not accepted: `error.code`."},
	{"filebus_waiting", "A file job waits for an approval, or for its artifacts."},
	{"filebus_approved", "A file job was approved. The folder is read once more, and it starts."},
	{"filebus_publishing", "A file job is in the queue: `meta.delivery_id`."},
	{"filebus_published", "A file job is published, or its state file says so."},
	{"filebus_rejected", "A file job was rejected."},
	{"filebus_failed", "A file job failed. A new approval tries it again."},
	{"filebus_unknown", "It is unknown if a file job is published."},
	{"filebus_refused", "A file of a folder was refused: `error.code` and `meta.path`."},
	{"bot_replied", "A message of the bot was sent, or a call for it failed: `meta.status`, `meta.reply_id`, `meta.chat_id`."},
	{"bot_fallback", "No rule of the bot answers a message, or the turn guard ended a scenario: `meta.guard`."},
	{"bot_escalated", "The bot handed a customer over to the operator's chat."},
	{"message_tag_mismatch", "The same content came with other tags. The first tags stay."},
	{"enqueue", "A post became deliveries. One event per message and run, with counts of channels."},
	{"dedup_suppressed", "The channel has this content in flight, or sent it within its dedup window. Above 1,000 channels one event lists `meta.channels`."},
	{"validation_failed", "A delivery was rejected before it was queued, because the platform would not accept it."},
	{"send_attempt", "The start record: a call starts. Without it, recovery knows that the claim made no call."},
	{"sent", "The platform accepted the post, or reconciling found it there."},
	{"retry_scheduled", "A call failed. The next attempt is at `meta.next_retry_at`."},
	{"unknown_outcome", "It is unknown whether the platform has the post. `meta.policy` is the channel's `on_unknown`."},
	{"unknown_resolved", "A person looked at the platform and said whether it has the post."},
	{"comment_failed", "The post is sent, but its first comment failed for good: `error`. Nothing is sent again."},
	{"failed_permanent", "The delivery failed for good, because the platform does not accept it."},
	{"dead_letter", "The delivery has no automatic attempt left, or it was held for too long."},
	{"released", "A claim ended before its call started. Its attempt is granted again."},
	{"claimed_lease_expired", "A claimed delivery was not sent in time. It is queued again."},
	{"sending_lease_expired", "The lease of a call ended, or its daemon stopped, before an outcome was committed."},
	{"stale_commit", "An outcome came from a claim that is no longer current. It changed nothing."},
	{"cooldown", "A platform asked a channel or a rate group to wait."},
	{"breaker", "The circuit breaker of a rate group opened or closed: `meta.state`."},
	{"channel_paused", "The channel sends nothing until a time: paused by a person, by its failures, or with its credential."},
	{"channel_disabled", "The channel sends nothing until a person enables it: by hand, or after repeated failures."},
	{"channel_enabled", "The channel was resumed or enabled."},
	{"channel_moved", "The platform gave a chat another id. Its channels use the new id."},
	{"auth_lost", "A platform rejected a credential. Its channels wait."},
	{"auth_refreshed", "A credential was renewed."},
	{"auth_expiring", "A credential expires soon and is not renewed automatically."},
	{"auth_rotated", "A credential got another secret, or a channel got another credential."},
	{"manual_requeue", "A person queued a delivery again."},
	{"manual_skip", "A person took a delivery out of the queue."},
	{"rescheduled", "A person or program moved a delivery that waits: from `meta.before` to `meta.scheduled_for`."},
	{"act_requested", "A person or program asked to edit, delete, pin or unpin a sent post: `meta.kind`."},
	{"act_done", "The platform made the change."},
	{"act_retry_scheduled", "The call for the change failed. The next attempt is at `meta.next_at`."},
	{"act_failed", "The change failed for good."},
	{"act_void", "The change is no longer needed: `meta.why`."},
}

// eventsPage returns docs/reference/events.md.
func eventsPage() string {
	var page strings.Builder
	page.WriteString("# Events\n\n<!-- Generated by make generate. Do not edit. -->\n\n" +
		"`autopost.events` has one row per event. Read it with `list_events` or `GET /api/v1/events`. Columns: `action`, `result` (`ok` or `error`), `attempt`,\n" +
		"`delivery_id`, `message_id`, `channel_id`, `error` (the normalized answer of the platform), `payload_ref` (its [raw payload](../operate/raw-payloads.md)) and `meta`. Claims are columns of the delivery, not events.\n" +
		"Manual actions are in the audit log, too. [Manual actions](../operate/manual-actions.md) lists the events to watch after each.\n\n| action | meaning |\n| --- | --- |\n")
	for _, a := range actions {
		fmt.Fprintf(&page, "| `%s` | %s |\n", a[0], a[1])
	}
	return page.String()
}
