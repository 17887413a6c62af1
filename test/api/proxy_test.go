package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// handOver requests the upload of a medium to a platform.
func (w *world) handOver(platform, authRef, blobRef, once string) reply {
	w.t.Helper()
	return w.ask(call{
		method: http.MethodPost, path: "/api/v1/media/proxy", key: w.keys["editor"], header: map[string]string{"Idempotency-Key": once},
		body: fmt.Sprintf(`{"platform": %q, "auth_ref": %q, "blob_ref": %q, "kind": "image", "alt": "a dot", "reason": "n8n sends it"}`, platform, authRef, blobRef),
	})
}

// handed returns the upload calls to a platform, successful or not.
func (w *world) handed(platform string) (calls int, digests []string) {
	for _, e := range w.World.Log.Entries(sim.Filter{Platform: platform}) {
		calls++
		for _, m := range e.Media {
			if m.Uploaded {
				digests = append(digests, m.Digest)
			}
		}
	}
	return calls, digests
}

// A medium is uploaded to the platform once for all requests, and each gets the token. A later post uses the token.
func TestMediumIsUploadedWithoutAPost(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('acme', 'x', 'x', 'env:TEST_X_KEYS')`)
	ref := w.ids["acme"]["blob_ref"]
	tokens := map[string]any{}
	for platform, authRef := range map[string]string{harness.MAX: w.ids["acme"]["max"], harness.X: "x"} {
		first := w.handOver(platform, authRef, ref, "first "+platform)
		require.Equal(t, 200, first.status, first.raw)
		require.NotEmpty(t, first.body["file_id"])
		tokens[platform] = first.body["file_id"]
		calls, contents := w.handed(platform)
		require.Equal(t, []string{sim.Digest([]byte(picture + "acme"))}, contents, "the very bytes, once")
		require.Empty(t, w.Sends(sim.Filter{Platform: platform}))

		replayed := w.handOver(platform, authRef, ref, "first "+platform)
		require.Equal(t, first.raw, replayed.raw)
		require.Equal(t, "true", replayed.header.Get("Idempotent-Replayed"))
		again := w.handOver(platform, authRef, ref, "")
		require.Equal(t, first.body["file_id"], again.body["file_id"])
		later, _ := w.handed(platform)
		require.Equal(t, calls, later, "the platform is not asked again")
		require.Equal(t, 2, pgtest.Value[int](w.DB, `select count(*)::int from autopost.admin_audit_log where action = 'record_upload' and after ->> 'platform' = $1`, platform))
	}

	upload := []string{"media", "upload", ref, "--workspace", "acme", "--platform", "max", "--auth-ref", w.ids["acme"]["max"], "--kind"}
	byHand := w.Run(nil, append(upload, "image", "--reason", "r")...)
	require.Zero(t, byHand.Code, byHand.Stderr)
	require.Equal(t, fmt.Sprintln(tokens[harness.MAX]), byHand.Stdout)
	require.Zero(t, w.Run(nil, append(upload, "image")...).Code, "the reason has a default")
	require.Equal(t, 2, w.Run(nil, append(upload, "scent", "--reason", "r")...).Code)
	refused := w.Run(nil, append(upload, "image", "--reason", "r", "--platform", "telegram")...)
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Stderr, "no_upload: telegram takes media along with a post only")

	w.Channel("acme", harness.Channel{ID: "shop", Platform: harness.MAX})
	w.Exec(`update autopost.channels set auth_ref = $1 where channel_id = 'shop'`, w.ids["acme"]["max"])
	w.Exec(`update autopost.workspaces set status = 'active' where workspace_id = 'acme'`)
	post := w.ask(call{method: http.MethodPost, path: "/api/v1/posts", key: w.keys["editor"], body: fmt.Sprintf(
		`{"text": "look", "media": [{"type": "image", "blob_ref": %q}], "routing": {"include_channels": ["shop"]}}`, ref)})
	require.Equal(t, 202, post.status, post.raw)
	w.UntilTrue(`select exists (select 1 from autopost.deliveries where channel_id = 'shop' and status = 'sent')`)
	_, contents := w.handed(harness.MAX)
	require.Len(t, contents, 1, "the post uses the token")
}

// A failed upload is a problem with the message of the platform and without a secret.
func TestFailedUploadIsAProblem(t *testing.T) {
	t.Parallel()
	w := open(t)
	ref, bot := w.ids["acme"]["blob_ref"], w.ids["acme"]["max"]
	for _, c := range []struct {
		platform, authRef, blobRef, reason, detail string
		status                                     int
	}{
		{"telegram", "b-acme", ref, "no_upload", "along with a post only", 422},
		{"youtube", "b-acme", ref, "no_upload", "along with a post only", 422},
		{"pigeon", "b-acme", ref, "validation_failed", `no platform "pigeon"`, 422},
		{"max", "nobody", ref, "credential_missing", `"nobody" is not bound for max`, 422},
		{"max", "b-acme", ref, "credential_missing", `"b-acme" is not bound for max`, 422},
		{"max", bot, w.ids["rival"]["blob_ref"], "media_missing_origin", "holds no such medium", 404},
	} {
		r := w.handOver(c.platform, c.authRef, c.blobRef, "")
		r.problem(t, c.status)
		require.Equal(t, c.reason, r.body["reason"])
		require.Contains(t, r.body["detail"], c.detail)
	}
	w.Fault(sim.Fault{Platform: harness.MAX, Method: "POST /uploads", To: 1, Effect: sim.EffectStatus, Status: 401, Code: "verify.token", Description: "Invalid access_token canary-max-token-f9LHod"})
	w.Fault(sim.Fault{Platform: harness.MAX, Method: "POST /uploads", From: 2, To: 2, Effect: sim.EffectStatus, Status: 503, Code: "service.unavailable", Description: "Come again", RetryAfter: 7})
	refused := w.handOver("max", bot, ref, "try")
	refused.problem(t, 422)
	require.Equal(t, "max_unauthorized", refused.body["reason"])
	require.Contains(t, refused.body["detail"], "Invalid access_token [redacted]")
	busy := w.handOver("max", bot, ref, "try")
	busy.problem(t, 503)
	require.Equal(t, "max_5xx", busy.body["reason"])
	require.NotEmpty(t, busy.header.Get("Retry-After"))
	require.Equal(t, 200, w.handOver("max", bot, ref, "try").status, "a failure is not kept as the answer")
}

// If X is still processing a medium, the request ends in time, and the retry continues.
func TestProcessingPlatformIsRetried(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.World.X.SetProcessing(time.Second)
	w.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('acme', 'x', 'x', 'env:TEST_X_KEYS')`)
	clip := w.ask(call{
		method: http.MethodPost, path: "/api/v1/media?kind=video", key: w.keys["editor"], header: map[string]string{"Content-Type": "video/mp4"},
		body: "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2 a clip",
	})
	require.Equal(t, 201, clip.status, clip.raw)
	r := w.ask(call{method: http.MethodPost, path: "/api/v1/media/proxy", key: w.keys["editor"], body: fmt.Sprintf(
		`{"platform": "x", "auth_ref": "x", "blob_ref": %q, "kind": "video", "reason": "r"}`, clip.body["blob_ref"])})
	require.Equal(t, 200, r.status, r.raw)
	require.Equal(t, "tweet_video", r.body["kind"])
	require.NotEmpty(t, r.body["expires_at"])
	require.NotEmpty(t, w.World.Log.Entries(sim.Filter{Platform: harness.X, Method: "GET /2/media/upload"}), "it was asked whether it is ready")
}
