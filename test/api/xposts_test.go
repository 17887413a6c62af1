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

// The examples of the founding document work as they are written there.
func TestXPostsTakeTheExamplesOfTheFoundingDocument(t *testing.T) {
	t.Parallel()
	w := open(t)
	at := "/api/admin/x-posts"
	ask := func(method, path, key, body string) reply {
		return w.ask(call{method: method, path: path, key: w.keys[key], body: body})
	}
	posttest.Channel(w.DB, "acme", "x1", posttest.Group("xg"), posttest.MaxParallel(1))
	w.Exec(`update autopost.channels set platform = 'x', target_id = 'me' where workspace_id = 'acme' and channel_id = 'x1'`)
	require.Equal(t, 200, ask(http.MethodPut, at+"/config", "operator", `{"channel_id": "x1"}`).status)
	r := ask(http.MethodPut, at+"/config", "operator", `{"enableImages": true, "rate": {"perHour": 6, "perDay": 25}, "templates": {"image": "{avatar_name} emerges: {prompt}"}}`)
	require.Equal(t, 200, r.status, r.raw)
	require.Equal(t, "{avatar_name} emerges: {prompt}", r.body["effective"].(map[string]any)["templates"].(map[string]any)["image"])
	require.Equal(t, "New video drop: {title}", r.body["effective"].(map[string]any)["templates"].(map[string]any)["video"], "what is not given stays")
	ids := map[string]string{}
	for kind, event := range map[string]string{
		"image": `{"event": "MEDIA.IMAGE.GENERATED", "payload": {"type": "image", "avatarId": "657ab...", "imageUrl": "https://cdn/.../img.png", "prompt": "Celestial ranger in neon forest",
			"guildId": "123456789012345678", "createdAt": "2025-09-20T12:00:00Z"}}`,
		"video": `{"event": "MEDIA.VIDEO.GENERATED", "payload": {"type": "video", "videoUrl": "https://cdn/.../vid.mp4", "title": "Origin cinematic", "avatarId": "657ab...", "createdAt": "2025-09-20T13:00:00Z"}}`,
		"combat": `{"event": "COMBAT.SUMMARY.GENERATED", "payload": {"type": "combat", "encounterId": "enc_91a2", "winner": {"id": "a1", "name": "Nyx"}, "loser": {"id": "b2", "name": "Helion"},
			"summaryText": "Nyx outmaneuvered Helion in a 7‑round duel...", "imageUrl": "https://cdn/.../climax.png", "rounds": 7, "createdAt": "2025-09-20T14:00:00Z"}}`,
	} {
		r := ask(http.MethodPost, "/api/v1/domain-events", "editor", event)
		require.Equal(t, 200, r.status, r.raw)
		require.Equal(t, "approved", r.body["status"], kind)
		ids[kind] = r.body["submission_id"].(string)
	}
	texts := map[string]string{"image": "657ab... emerges: Celestial ranger in neon forest", "video": "New video drop: Origin cinematic", "combat": "Nyx defeated Helion in 7 rounds!"}
	media := map[string]string{"image": "image", "video": "video", "combat": "image"}
	for kind, id := range ids {
		row := ask(http.MethodGet, at+"?type="+kind, "viewer", "").body["items"].([]any)[0].(map[string]any)
		require.Equal(t, []any{id, texts[kind], media[kind], kind}, []any{row["_id"], row["resolvedContent"], row["mediaType"], row["templateKey"]})
	}
	first := ask(http.MethodGet, at+"?limit=2", "viewer", "")
	require.Len(t, first.body["items"], 2)
	rest := ask(http.MethodGet, at+"?limit=2&cursor="+first.body["next_cursor"].(string), "viewer", "")
	require.Len(t, rest.body["items"], 2)
	require.NotContains(t, first.body["items"], rest.body["items"].([]any)[0])

	// A failed event is retried. Its media are fetched again.
	w.Exec(`update autopost.submissions set status = 'failed', claim_token = null, lease_until = null where submission_id = $1::uuid`, ids["image"])
	r = ask(http.MethodPost, at+"/"+ids["image"]+"/retry", "operator", "")
	require.Equal(t, 200, r.status, r.raw)
	require.Equal(t, map[string]any{"status": "fetching", "attempt": 0.0}, r.body["after"])
}

// A page of another site cannot use the API with what a browser sends along: a form, cookies, or a simple request.
func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	before := w.fingerprint("acme")
	paths := []string{"/api/admin/x-posts/" + w.ids["acme"]["approve-x-post"] + "/approve", "/api/admin/x-posts/" + w.ids["acme"]["reject-x-post"] + "/reject",
		"/api/v1/submissions/" + w.ids["acme"]["approve-submission"] + "/approve"}
	for _, path := range paths {
		for _, header := range []map[string]string{
			{"Origin": "https://evil.example", "Content-Type": "text/plain"},
			{"Origin": "https://evil.example", "Content-Type": "application/x-www-form-urlencoded", "Cookie": "session=" + w.keys["owner"]},
			{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Cookie": "key=" + w.keys["owner"], "Authorization": ""},
			{"Authorization": "Basic " + w.keys["owner"]},
		} {
			r := w.ask(call{method: http.MethodPost, path: path, body: `{"reason": "forged"}`, header: header})
			r.problem(t, 401)
			require.Empty(t, r.header.Get("Access-Control-Allow-Origin"))
		}
		// With a key, which a page of another site does not have, a simple request is refused: its content type is not JSON.
		w.ask(call{method: http.MethodPost, path: path, key: w.keys["owner"], body: `{"reason": "forged"}`, header: map[string]string{"Content-Type": "text/plain"}}).problem(t, 415)
		// A preflight request allows nothing.
		r, err := w.try(call{method: http.MethodOptions, path: path, header: map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}})
		require.NoError(t, err)
		require.Empty(t, r.header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, 401, r.status)
	}
	require.Equal(t, before, w.fingerprint("acme"))
}
