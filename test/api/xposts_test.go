package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// The API of Global X has the paths, methods and names of its founding document.
func TestXPostsFollowTheFoundingDocument(t *testing.T) {
	t.Parallel()
	w := open(t)
	at := "/api/admin/x-posts"
	ask := func(method, path, key, body string) reply {
		return w.ask(call{method: method, path: path, key: w.keys[key], body: body})
	}
	posttest.Channel(w.DB, "acme", "x1", posttest.Group("xg"), posttest.MaxParallel(1))
	w.Exec(`update autopost.channels set platform = 'x', target_id = 'me' where workspace_id = 'acme' and channel_id = 'x1'`)
	r := ask(http.MethodPut, at+"/config", "operator", `{"channel_id": "x1", "moderation": {"enabled": true}, "rate": {"perHour": 6, "perDay": 25}}`)
	require.Equal(t, 200, r.status, r.raw)
	r = ask(http.MethodGet, at+"/config", "viewer", "")
	require.Equal(t, map[string]any{"perHour": 6.0, "perDay": 25.0}, r.body["effective"].(map[string]any)["rate"])
	require.Equal(t, "global", r.body["stored"].(map[string]any)["_id"])
	r = ask(http.MethodPut, at+"/config", "operator", `{"templates": {"image": "{colour}"}}`)
	require.Equal(t, 422, r.status, r.raw)

	r = ask(http.MethodPost, "/api/v1/domain-events", "editor", `{"event": "COMBAT.SUMMARY.GENERATED", "payload": {"type": "combat", "encounterId": "e1",
		"winner": {"id": "a", "name": "Nyx"}, "loser": {"id": "b", "name": "Helion"}, "summaryText": "Won", "rounds": 7, "createdAt": "2026-06-01T14:00:00Z"}}`)
	require.Equal(t, 200, r.status, r.raw)
	require.Equal(t, "pending", r.body["status"])
	id := r.body["submission_id"].(string)

	r = ask(http.MethodGet, at+"?status=pending&type=combat", "viewer", "")
	row := r.body["items"].([]any)[0].(map[string]any)
	require.Equal(t, []any{id, "combat", "Nyx defeated Helion in 7 rounds!", nil, nil}, []any{row["_id"], row["eventType"], row["resolvedContent"], row["tweetId"], row["mediaUrl"]})
	for _, field := range []string{"eventType", "status", "mediaType", "mediaUrl", "avatarIds", "encounterId", "templateKey", "hash", "attempts", "nextAttemptAt", "lastError",
		"tweetUrl", "meta", "createdAt", "updatedAt", "postedAt", "rejectedReason"} {
		require.Contains(t, row, field)
	}

	r = ask(http.MethodPost, at+"/"+id+"/approve", "approver", `{"digest": "`+pgtest.Value[string](w.DB, `select repeat('0', 64)`)+`"}`)
	require.Equal(t, 409, r.status, r.raw)
	require.Equal(t, row["digest"], r.body["digest"])
	require.NotEmpty(t, r.body["plan"])
	require.Equal(t, 200, ask(http.MethodPost, at+"/"+id+"/approve", "approver", "").status)
	r = ask(http.MethodPost, at+"/"+id+"/reject", "approver", `{"reason": "too late"}`)
	require.Equal(t, 409, r.status, r.raw)
	require.Equal(t, "approve", r.body["decision"].(map[string]any)["decision"])
	require.NotEmpty(t, r.body["decision"].(map[string]any)["by"])
	require.NotEmpty(t, r.body["decision"].(map[string]any)["at"])
	require.Equal(t, 409, ask(http.MethodPost, at+"/"+id+"/retry", "operator", "").status)

	require.Equal(t, 404, ask(http.MethodPost, at+"/"+w.ids["acme"]["submission_id"]+"/approve", "approver", "").status, "it is not an event")
	require.Equal(t, 404, ask(http.MethodPost, at+"/507f1f77bcf86cd799439011/approve", "approver", "").status)
	require.Equal(t, 405, ask(http.MethodDelete, at+"/"+id+"/approve", "approver", "").status)
	r = ask(http.MethodPost, at+"/preview", "viewer", `{"type": "image", "template": "{avatar_name} emerges: {prompt}", "context": {"avatar_name": "Nyx", "prompt": "a ranger @bob"}}`)
	require.Equal(t, "Nyx emerges: a ranger", r.body["text"], r.raw)
	require.Equal(t, 422, ask(http.MethodPost, at+"/preview", "viewer", `{"type": "image", "context": {"avatar_name": "Nyx"}}`).status)
	r = ask(http.MethodGet, at+"/stats", "viewer", "")
	require.NotEmpty(t, r.body["counts"], r.raw)
}
