package api

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var roles = []string{"viewer", "editor", "approver", "operator", "owner"}

// lowest is the intended role of each operation, viewer by default. The table of the daemon must agree.
var lowest = map[string]string{
	"submit-post": "editor", "upload-media": "editor", "proxy-media": "editor", "put-template": "editor", "enable-template": "editor",
	"edit-delivery": "editor", "delete-delivery": "editor", "pin-delivery": "editor", "unpin-delivery": "editor", "cancel-acts": "editor",
	"edit-post": "editor", "delete-post": "editor", "pin-post": "editor", "unpin-post": "editor",
	"create-recurrence": "editor", "put-recurrence": "editor", "remove-recurrence": "editor", "reschedule-occurrence": "editor", "skip-occurrence": "editor",
	"list-drafts": "editor", "get-draft": "editor", "create-draft": "editor", "put-draft": "editor", "remove-draft": "editor", "submit-draft": "editor",
	"reschedule-post": "editor", "reschedule-delivery": "editor", "reschedule-deliveries": "editor",
	"requeue-deliveries": "operator", "skip-deliveries": "operator", "skip-post": "operator", "resolve-delivery": "operator", "release-stale": "operator",
	"put-channel": "operator", "pause-channel": "operator", "resume-channel": "operator", "enable-channel": "operator", "disable-channel": "operator",
	"pause-group": "operator", "test-source": "operator", "fetch-source": "operator", "remove-channel": "owner", "remove-webhook": "owner", "remove-alert-target": "owner", "remove-moderation-chat": "owner",
	"put-setting": "owner", "export-config": "owner", "diff-config": "owner", "apply-config": "owner",
	"put-group": "operator", "disable-group": "operator", "enable-group": "operator", "put-source": "operator", "put-quota": "operator", "lift-quota": "operator",
	"put-x-post-config": "operator", "approve-x-post": "approver", "reject-x-post": "approver", "retry-x-post": "operator", "put-event-type": "operator", "put-avatar": "operator", "submit-event": "editor",
	"put-budget": "owner", "put-retry-policy": "operator", "link-raw": "owner", "requeue-credential": "operator", "retry-submission": "operator", "edit-submission": "editor", "approve-submission": "approver", "reject-submission": "approver", "list-audit": "operator", "get-audit-head": "operator", "verify-audit": "operator", "list-daemons": "owner",
	"acknowledge-alert": "operator", "list-alert-targets": "operator", "get-alert-target": "operator", "test-alert-target": "operator", "confirm-alert-target": "operator", "put-alert-target": "owner", "list-moderation-chats": "operator", "get-moderation-chat": "operator", "put-moderation-chat": "owner",
	"rotate-channel-auth": "owner", "put-endpoint": "owner", "rotate-endpoint": "owner", "disable-endpoint": "owner", "put-workspace": "owner", "list-keys": "owner",
	"get-key": "owner", "disable-key": "owner",
	"prepare-publish-job": "editor", "approve-publish-job": "approver", "reject-publish-job": "approver",
	"put-bot-rule": "editor", "import-bot-rules": "editor", "enable-bot-rule": "editor", "forget-bot-chat": "owner",
	"list-users": "owner", "get-user": "owner", "put-user": "owner", "list-invitations": "owner", "create-invitation": "owner", "remove-invitation": "owner", "create-key": "owner",
	"test-credential": "owner", "set-credential": "owner", "check-credential": "operator", "link-credential": "owner", "discover-chats": "operator", "remove-credential": "owner",
	"put-webhook": "owner", "test-webhook": "operator", "replay-webhook": "operator",
}

// personal are the operations that no key runs: they are for people with a session, or begin one.
var personal = []string{"create-session", "end-session", "confirm-me", "sign-out-user", "create-workspace"}

// Keys do not run what is for people. test/pages runs it with sessions.
func TestKeysAreNotPeople(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, o := range w.operations {
		if !slices.Contains(personal, o.ID) {
			continue
		}
		c := w.request(o, "acme")
		c.key = w.keys["owner"]
		if o.ID == "create-session" {
			w.ask(c).problem(t, 401)
			continue
		}
		w.ask(c).problem(t, 403)
	}
}

func TestRolesMatchTheTable(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, o := range w.operations {
		if slices.Contains(personal, o.ID) {
			continue
		}
		need := lowest[o.ID]
		if need == "" {
			need = "viewer"
			require.False(t, o.writes(), "%s writes: decide who may", o.ID)
		}
		before := w.fingerprint("acme")
		for _, role := range roles {
			if slices.Index(roles, role) >= slices.Index(roles, need) {
				continue
			}
			c := w.request(o, "acme")
			c.key = w.keys[role]
			r := w.ask(c)
			r.problem(t, 403)
			require.Contains(t, r.body["detail"], "role "+role, o.ID)
			require.Contains(t, r.body["detail"], "needs "+need, o.ID)
		}
		require.Equal(t, before, w.fingerprint("acme"), "%s was refused and changed something", o.ID)
		for _, role := range roles[slices.Index(roles, need):] {
			c := w.request(o, "acme")
			c.key = w.keys[role]
			if o.ID == "list-daemons" || o.ID == "put-setting" { // a key belongs to one workspace
				w.ask(c).problem(t, 403)
				continue
			}
			require.NotEqual(t, 403, w.ask(c).status, "%s for %s", o.ID, role)
		}
	}
}

func TestScopesNarrowAKey(t *testing.T) {
	t.Parallel()
	w := open(t)
	key := w.key("acme", "--role", "owner", "--scope", "channels:read", "--scope", "posts:write")
	allowed := []string{"list-channels", "get-channel", "submit-post", "submit-event"}
	for _, o := range w.operations {
		c := w.request(o, "acme")
		c.key = key
		if slices.Contains(personal, o.ID) {
			continue
		}
		r := w.ask(c)
		if slices.Contains(allowed, o.ID) {
			require.Less(t, r.status, 300, "%s: %s", o.ID, r.raw)
			continue
		}
		r.problem(t, 403)
		require.Contains(t, r.body["detail"], "has the scopes channels:read, posts:write", o.ID)
		require.Regexp(t, `needs [a-z]+:(read|write)\.$`, r.body["detail"], o.ID)
	}
}

// An expired, disabled or replaced key is refused.
func TestKeysEnd(t *testing.T) {
	t.Parallel()
	w := open(t)
	list := func(key string) int {
		return w.ask(call{method: http.MethodGet, path: "/api/v1/channels", key: key}).status
	}
	id := func(name string) string {
		for _, row := range w.ask(call{method: http.MethodGet, path: "/api/v1/keys", key: w.keys["owner"]}).body["items"].([]any) {
			if k := row.(map[string]any); k["name"] == name {
				return k["key_id"].(string)
			}
		}
		t.Fatalf("no key %s", name)
		return ""
	}

	ends := w.key("acme", "--name", "ends", "--expires", "2999-01-01T00:00:00Z")
	require.Equal(t, 200, list(ends))
	require.NotEmpty(t, w.ask(call{method: http.MethodGet, path: "/api/v1/keys/" + id("ends"), key: w.keys["owner"]}).body["last_used_at"])
	w.Exec(`update autopost.api_keys set expires_at = now() where name = 'ends'`)
	require.Equal(t, 401, list(ends))

	old := w.key("acme", "--name", "turns", "--role", "editor", "--scope", "channels:read")
	result := w.Run(nil, "apikey", "rotate", id("turns"), "--workspace", "acme", "--overlap", "0s", "--json")
	require.Zero(t, result.Code, result.Stderr)
	require.Equal(t, 401, list(old))
	require.Contains(t, result.Stdout, `"key":"ap_`)
	turned := w.ask(call{method: http.MethodGet, path: "/api/v1/keys/" + id("turns"), key: w.keys["owner"]})
	require.Equal(t, "editor", turned.body["role"])
	require.Equal(t, []any{"channels:read"}, turned.body["scopes"])

	gone := w.key("acme", "--name", "gone")
	at := "/api/v1/keys/" + id("gone") + "/disable"
	require.Equal(t, 200, w.ask(call{method: http.MethodPost, path: at + "?dry_run=true", key: w.keys["owner"], body: `{"reason": "r"}`}).status)
	require.Equal(t, 200, list(gone))
	require.Equal(t, 200, w.ask(call{method: http.MethodPost, path: at, key: w.keys["owner"], body: `{"reason": "r"}`}).status)
	require.Equal(t, 401, list(gone))

	for _, args := range [][]string{{"list"}, {"show", id("gone")}} {
		result := w.Run(nil, append(append([]string{"apikey"}, args...), "--workspace", "acme")...)
		require.Zero(t, result.Code, result.Stderr)
		require.Contains(t, result.Stdout, "gone")
		require.NotContains(t, result.Stdout, gone)
	}
	require.Equal(t, 2, w.Run(nil, "apikey", "add", "--workspace", "acme", "--name", "x", "--scope", "horses:ride").Code)
}
