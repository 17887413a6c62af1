package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// The submission and its events say why a medium was refused and what to do.
func TestRefusedMediaSayWhy(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	contents := map[string]string{
		"/page.png":  "<!DOCTYPE html><html><body>Sign in</body></html>",
		"/logo.png":  `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"/bomb.gif":  "GIF89a\xff\xff\xff\xff\x00\x00\x00",
		"/empty.png": "",
	}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large.mp4" {
			w.Header().Set("Content-Length", fmt.Sprint(1<<40))
			return
		}
		w.Header().Set("Content-Type", "image/png") // which nobody believes
		_, _ = fmt.Fprint(w, contents[r.URL.Path])
	}))
	t.Cleanup(source.Close)
	d := h.Serve()
	for _, c := range []struct{ url, kind, code, says string }{
		{source.URL + "/page.png", "image", "media_wrong_type", "the content must be image, got an HTML page; use the URL of the content itself"},
		{source.URL + "/logo.png", "image", "media_wrong_type", "the picture must be JPEG, PNG, GIF or WebP, got image/svg+xml"},
		{source.URL + "/bomb.gif", "image", "media_wrong_type", "a picture of 65535x65535 pixels is refused"},
		{source.URL + "/empty.png", "image", "media_wrong_type", "the content must not be empty"},
		{source.URL + "/large.mp4", "video", "media_too_large", "make it smaller, or raise MAX_MEDIA_BYTES_IMAGE or MAX_MEDIA_BYTES_VIDEO"},
		{"http://169.254.169.254/latest/meta-data/", "image", "media_blocked_address", "add an exception to AUTOPOST_OUTBOUND_ALLOW"},
		{"http://0x7f.1/", "image", "media_blocked_address", "have a public address"},
	} {
		answer := h.Push(d, "secret-cms", harness.Post("source_ref", c.url, "text", "x", "media", []any{map[string]any{"type": c.kind, "url": c.url}}))
		require.Equal(t, "accepted", answer.Text("status"))
		h.UntilTrue(`select status = 'failed' from autopost.submissions where source_ref = $1`, c.url)
		for _, found := range []string{
			pgtest.Value[string](h.DB, `select last_error::text from autopost.submissions where source_ref = $1`, c.url),
			pgtest.Value[string](h.DB, `select e.error::text from autopost.events e join autopost.submissions s on s.workspace_id = e.workspace_id and s.submission_id::text = e.meta ->> 'submission_id'
				where e.action = 'submission_failed' and s.source_ref = $1`, c.url),
		} {
			require.Contains(t, found, c.code)
			require.Contains(t, found, c.says)
		}
	}
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.media_origin`))
}
