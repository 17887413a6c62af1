package api

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"autopost/internal/configfile"
)

// resources describes each resource of the API by its first part of a path: the name of one object, and the tag.
var resources = map[string]struct{ one, tag string }{
	"acts":             {"post change", "Changes of sent posts: edit, delete, pin, unpin."},
	"alert-targets":    {"alert target", "Recipients of alerts."},
	"alerts":           {"alert", "Problems, each with its remedy."},
	"audit":            {"entry of the audit log", "The audit log: who changed what and why."},
	"budgets":          {"budget", "Monthly money limits of credentials."},
	"channels":         {"channel", "Targets on platforms, with credential and limits."},
	"bot":              {"bot", "The shop bot: its rules, conversations, tries and replays."},
	"chats":            {"chat", "Chats that bots discovered."},
	"config":           {"configuration", "The configuration of the workspace as a file."},
	"credentials":      {"credential", "Named secrets. The secrets are never returned."},
	"daemons":          {"daemon", "The daemons of the installation."},
	"deliveries":       {"delivery", "One message for one channel: the unit of queue work."},
	"drafts":           {"draft", "Posts that the caller has not submitted yet."},
	"endpoints":        {"endpoint", "Entry points for posts, with a secret or a signature."},
	"events":           {"event", "The history of posts, deliveries and channels."},
	"groups":           {"rate group", "Channels that share a rate limit."},
	"health":           {"health snapshot", "The state of the workspace in one answer."},
	"overview":         {"overview", "The health of the workspace with its worst alerts and the calls of the last hour."},
	"summary":          {"summary", "What waits for a person in the workspace."},
	"keys":             {"API key", "Keys of this API, without secrets."},
	"media":            {"medium", "Pictures, videos and files of the media store."},
	"messages":         {"message", "Stored content. The same rows as posts."},
	"plan":             {"plan", "A dry run of a post."},
	"posts":            {"post", "Posts and their deliveries."},
	"queue":            {"queue", "Counts and forecast of the waiting deliveries."},
	"quotas":           {"quota", "Limits of posts or calls in a sliding window."},
	"recurrences":      {"recurrence", "Posts that repeat by a rule, and their occurrences."},
	"retry-policies":   {"retry policy", "How failures are retried."},
	"runs":             {"run", "Requests and polls that brought posts."},
	"sessions":         {"session", "Sign-in and sign-out of people."},
	"me":               {"person", "The caller."},
	"users":            {"person", "People with a role in the workspace."},
	"invitations":      {"invitation", "Links that make a person a member."},
	"settings":         {"setting", "Values that the database decides by."},
	"sources":          {"source", "Feeds, APIs, databases and folders."},
	"stream":           {"stream", "Changes of the workspace as they happen."},
	"submissions":      {"submission", "Accepted posts that wait for media or a decision."},
	"templates":        {"template", "Templates of texts."},
	"x-posts":          {"event of Global X", "Domain events that one X channel posts, and its configuration."},
	"avatars":          {"avatar", "Names of avatars, for {avatar_name} of events that bring none."},
	"event-types":      {"event type", "Own types of domain events."},
	"domain-events":    {"domain event", "Facts from other programs that become posts."},
	"webhooks":         {"result webhook", "Signed requests that report events to your address."},
	"workspaces":       {"workspace", "The workspace of the key."},
	"moderation-chats": {"moderators' chat", "Chats whose members decide about posts."},
	"filebus":          {"file job", "Jobs that folders bring."},
	"calendar":         {"calendar", "What was sent and what waits, by time."},
	"slots":            {"slot", "Free times of channels."},
}

// configured maps a schema to the resource of the configuration with the same fields.
var configured = map[string]string{
	"Channel": "channel", "Endpoint": "endpoint", "Source": "source", "Webhook": "webhook", "AlertTarget": "alert_target", "ModerationChat": "moderation_chat", "Quota": "quota",
	"Workspace": "workspace", "TemplateRow": "template", "WrittenTemplate": "template", "Group": "group",
}

// meanings describes the fields and parameters without a tag doc, by name or by SCHEMA.name.
var meanings = map[string]string{
	"EventType.event":       "The name of the event.",
	"DomainEvent.event":     "The name of the event: MEDIA.IMAGE.GENERATED, MEDIA.VIDEO.GENERATED, COMBAT.SUMMARY.GENERATED, or an own type.",
	"draft_id":              "The draft.",
	"EventAnswer.status":    "The result of the event.",
	"EventAnswer.reason":    "Why it was skipped: duplicate, disabled or shadow_mode.",
	"author":                "The person that submitted it; null for a program.",
	"decided_at":            "When a person decided; null before.",
	"decided_by":            "The person that decided; null before.",
	"decision_reason":       "The reason of a rejection.",
	"decision_source":       "The way of the decision: api, page, command, telegram, max or file:SOURCE.",
	"SubmissionPlan.media":  "The media of the post.",
	"Decision.decision":     "approve or reject.",
	"Decision.at":           "When the person decided.",
	"Decision.reason":       "The reason of a rejection.",
	"Approval.by":           "The person.",
	"Approval.decision":     "approve or reject.",
	"Approval.at":           "When the person decided.",
	"Approval.source":       "The way of the decision.",
	"Approval.digest":       "The digest of the plan that it is about.",
	"Decided.needed":        "How many people must approve.",
	"Decided.approvals":     "How many people approved.",
	"Decided.status":        "The status of the submission.",
	"Decided.message_id":    "The message that it became.",
	"Submission.approvals":  "The approvals and rejections, oldest first.",
	"RawLink.payload_ref":   "The name of the raw payload.",
	"Rendering.verdict":     "queued, or why these channels would not get it.",
	"acknowledged_at":       "The time of the acknowledgement; null if nobody acknowledged the alert.",
	"acknowledged_by":       "The operator who acknowledged the alert.",
	"act_id":                "The id of the post change.",
	"action":                "The action: docs/reference/events.md lists those of events.",
	"AuditRow.action":       "The function of the change.",
	"after":                 "The changed fields after the change.",
	"alert_id":              "The id of the alert.",
	"applied":               "true if something was changed, or would be in a dry run.",
	"as_of":                 "The time of the forecast.",
	"at":                    "The time of the snapshot.",
	"attempt":               "The number of the attempt; 0 before the first claim.",
	"attempted_at":          "The time of the last call.",
	"auth_held":             "true while the channel waits because its credential was refused.",
	"auth_lost_at":          "The time at which the platform refused the credential.",
	"auth_ref":              "The name of the credential.",
	"before":                "The changed fields before the change.",
	"buttons":               "Rows of link buttons below the message.",
	"cancelled":             "The number of cancelled changes.",
	"category":              "TRANSIENT: a retry may help. PERMANENT: it does not.",
	"channel_id":            "The id of the channel.",
	"channels":              "The number of channels.",
	"Changed.channels":      "Each changed channel.",
	"code":                  "The stable code of the error.",
	"content_hash":          "The hash of the content. The same content has the same hash.",
	"count":                 "The number of failures with this code.",
	"created":               "true if the object did not exist before.",
	"created_at":            "The time of creation.",
	"deduped":               "The number of channels that have the content already.",
	"deliveries":            "The number of deliveries.",
	"delivery_id":           "The id of the delivery.",
	"disable_preview":       "No link preview.",
	"dry_run":               "true if this was a dry run: nothing was changed.",
	"due_at":                "The time from which the change may be made.",
	"enabled":               "false if it is switched off.",
	"endpoint_id":           "The id of the endpoint.",
	"enqueued":              "The number of channels that got a delivery.",
	"error":                 "The normalized error; null without one.",
	"error_streak":          "The number of permanent errors in a row.",
	"errors":                "The errors of the template and of the post.",
	"event_id":              "The id of the event, also its webhook-id.",
	"expires_at":            "The time at which the key ends; null if it does not end.",
	"failures":              "The number of failures in a row.",
	"fanout":                "running while the deliveries are created in the background.",
	"finished_at":           "The time of the end; null before it.",
	"first_at":              "The first planned start.",
	"first_seen":            "The time of the first update about the chat.",
	"has_secret":            "true if the endpoint has a secret.",
	"hash_version":          "The version of the hash function.",
	"health_next_at":        "The time of the next health snapshot.",
	"height":                "Pixels of a picture; 0 for other media.",
	"id":                    "The id of the row.",
	"inflight":              "The number of running calls.",
	"ingest_run_id":         "The run that brought the post.",
	"invalid":               "The number of channels whose platform refuses the post.",
	"items":                 "The rows.",
	"key":                   "The name of the setting.",
	"key_id":                "The id of the API key.",
	"kind":                  "The kind of the object.",
	"Alert.kind":            "The kind of the alert: docs/operate/alerts.md lists all.",
	"Run.kind":              "The kind of input.",
	"RunRow.kind":           "The kind of input.",
	"last_at":               "The last planned start.",
	"last_error":            "The error of the last call; null without one.",
	"last_notified_at":      "The time of the last notice.",
	"last_seen":             "The time of the last update about the chat.",
	"last_seen_at":          "The time of the last post with this content.",
	"limit":                 "The longest text, in the unit of the platform.",
	"link":                  "The link of the post.",
	"lost_at":               "The time at which the platform refused the credential.",
	"meaning":               "The meaning, the unit and the range.",
	"message":               "The error in words.",
	"Explained.message":     "The message of the delivery.",
	"message_id":            "The id of the message.",
	"meta":                  "Details of the row.",
	"Cell.meta":             "Media, buttons, steps and omitted parts.",
	"month_usd":             "The most dollars for a calendar month (UTC).",
	"name":                  "The name for people.",
	"next_attempt_at":       "The time of the next attempt; null if none follows.",
	"next_poll_at":          "The time of the next poll.",
	"old_signing_until":     "The time until which the previous credential signs, too.",
	"older_than_seconds":    "The least age of the claims, in seconds.",
	"oldest_due_at":         "The time since which the oldest delivery has been due; null if none is.",
	"operator":              "The operator who asked for it.",
	"parse_mode":            "The markup of the text.",
	"paused_channels":       "The number of paused channels.",
	"paused_until":          "The end of the pause; null without a pause.",
	"platform":              "The platform.",
	"polled_at":             "The time of the last poll.",
	"provider_message_id":   "The id of the post at the platform.",
	"queued":                "The number of queued events.",
	"raised_at":             "The time at which the problem was found.",
	"rate_group":            "The rate group.",
	"reason":                "The code of a refusal.",
	"ActRow.reason":         "The reason that the operator gave.",
	"AuditRow.reason":       "The reason that the operator gave.",
	"refused":               "The number of refused changes.",
	"render_meta":           "Media, buttons, steps and omitted parts.",
	"rendered_text":         "The text in the markup of the platform.",
	"requested":             "The number of requested changes.",
	"requeued":              "The number of queued deliveries.",
	"result":                "error if the action failed, else ok.",
	"retry_after_ms":        "The wait that the platform asked for, in milliseconds.",
	"role":                  "The role of the key: viewer, editor, approver, operator or owner.",
	"rotated_at":            "The time of the last new secret.",
	"route_filter":          "The conditions on the tags of posts; null accepts all.",
	"run_id":                "The id of the run.",
	"scheduled_for":         "The earliest start; null for at once.",
	"scope":                 "The object that the error concerns: the delivery, the channel, or all channels of the credential.",
	"seconds":               "The duration of the pause in seconds.",
	"sent_at":               "The time at which the platform accepted the post.",
	"severity":              "The severity.",
	"size_bytes":            "The size in bytes.",
	"skipped":               "The number of skipped deliveries.",
	"Submitted.skipped":     "The number of channels whose routing or send_mode excludes the post.",
	"source_id":             "The id of the source.",
	"source_ref":            "The id of the post at its sender.",
	"started_at":            "The time of the start.",
	"status":                "The status.",
	"stopped":               "true if the source is not polled any more.",
	"subject":               "The changed object, as kind:id.",
	"submission_id":         "The id of the submission.",
	"tags":                  "The tags.",
	"target_id":             "The platform's id of the chat or account.",
	"AlertTarget.target_id": "The id of the alert target.",
	"template":              "The template.",
	"template_id":           "The id of the template.",
	"template_version":      "The template and its version.",
	"text":                  "The text.",
	"title":                 "The name of the chat.",
	"told_at":               "The time of the last notice to the target.",
	"trace_id":              "The id of the post in logs and traces.",
	"truncated":             "true if the text was cut.",
	"ts":                    "The time.",
	"type":                  "The type of the event: docs/result-webhooks.md lists all.",
	"unknown_outcomes":      "The number of attempts with an unknown outcome.",
	"updated_at":            "The time of the last change.",
	"username":              "The public name of the chat, without @.",
	"valid_until":           "The time at which the credential ends.",
	"value":                 "The value, as JSON.",
	"version":               "The version of the template.",
	"waiting":               "The number of waiting deliveries.",
	"webhook_id":            "The id of the result webhook.",
	"what":                  "The problem in words.",
	"window_seconds":        "The length of the window in seconds.",
	"workspace_id":          "The id of the workspace.",
}

// explain adds the descriptions of fields and parameters that have no tag doc.
func explain(document *huma.OpenAPI) {
	schemas := document.Components.Schemas.Map()
	for name, words := range map[string]string{"RouteFilter": meanings["route_filter"], "Routing": "The channels of this post.", "PostTemplate": "The template that makes the text, and its values.",
		"DeliveryError": meanings["last_error"]} {
		schemas[name].Description = words
	}
	schemas["ChannelChange"].Properties["route_filter"] = &huma.Schema{Ref: "#/components/schemas/RouteFilter"}
	ladder := schemas["RetryPolicyChange"].Properties["ladder_ms"]
	ladder.Type, ladder.AdditionalProperties, ladder.Items = huma.TypeArray, nil, &huma.Schema{Type: huma.TypeInteger}
	payloads := schemas["RecurrenceChange"].Properties["payloads"]
	payloads.Type, payloads.AdditionalProperties, payloads.Items = huma.TypeArray, nil, &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	for name, schema := range schemas {
		for field, property := range schema.Properties {
			if property.Description == "" && property.Ref == "" {
				property.Description = meaningOf(name, field)
			}
		}
	}
	for _, operation := range Operations(document) {
		for _, parameter := range operation.Parameters {
			switch {
			case parameter.Description != "":
			case parameter.Name == "id":
				parameter.Description = "The id of the " + resources[operation.Tags[0]].one + "."
			default:
				parameter.Description = meanings[parameter.Name]
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		document.Tags = append(document.Tags, &huma.Tag{Name: name, Description: resources[name].tag})
	}
}

// meaningOf returns the description of a field of a schema; "" if there is none.
func meaningOf(schema, field string) string {
	if words, ok := meanings[schema+"."+field]; ok {
		return words
	}
	if kind, ok := configured[schema]; ok {
		if f, ok := configfile.KindOf(kind).Field(field); ok {
			return sentence(f.Help)
		}
	}
	return meanings[field]
}

// sentence makes a sentence of a help text. A value at its start stays as it is written.
func sentence(help string) string {
	if first, _, _ := strings.Cut(help, " "); strings.ContainsAny(first, ",;:") {
		return help + "."
	}
	return strings.ToUpper(help[:1]) + help[1:] + "."
}

// changeOf returns the schema of a body that changes a row of configuration: the fields of its kind, further ones, and
// the reason. The database validates the values.
func changeOf(kind string, more ...configfile.Field) *huma.Schema {
	title := ""
	for part := range strings.SplitSeq(kind, "_") {
		title += strings.ToUpper(part[:1]) + part[1:]
	}
	schema := &huma.Schema{Title: title + "Change", Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{
		"reason": {Type: huma.TypeString, Description: "The reason for the audit log; X-Autopost-Reason may hold it instead."},
	}}
	for _, f := range append(slices.Clone(configfile.KindOf(kind).Fields), more...) {
		schema.Properties[f.Name] = valueOf(f)
		if rule := configfile.KindOf(kind).Rule(f.Name); rule.Bounded {
			schema.Properties[f.Name].Minimum = &rule.Least
			if !math.IsInf(rule.Most, 1) {
				schema.Properties[f.Name].Maximum = &rule.Most
			}
		}
	}
	return schema
}

// valueOf returns the schema of a field of the configuration. null restores its default.
func valueOf(f configfile.Field) *huma.Schema {
	schema := &huma.Schema{Description: sentence(f.Help), Nullable: true}
	switch f.Type {
	case configfile.Number:
		schema.Type = huma.TypeNumber
	case configfile.Boolean:
		schema.Type = huma.TypeBoolean
	case configfile.List:
		schema.Type, schema.Items = huma.TypeArray, &huma.Schema{Type: huma.TypeString}
	case configfile.Object:
		schema.Type, schema.AdditionalProperties = huma.TypeObject, true
	default:
		schema.Type = huma.TypeString
	}
	return schema
}
