package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/test/house"
)

// What cannot be taken says what it is and what to do, where one looks for a post that
// did not come: at its submission and in the events.
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
		{source.URL + "/page.png", "image", "media_wrong_type", "got an HTML page instead of image; the URL must lead to the content itself"},
		{source.URL + "/logo.png", "image", "media_wrong_type", "image/svg+xml is no picture that platforms show; use JPEG, PNG, GIF or WebP"},
		{source.URL + "/bomb.gif", "image", "media_wrong_type", "a picture of 65535x65535 pixels cannot be taken"},
		{source.URL + "/empty.png", "image", "media_wrong_type", "the content is empty"},
		{source.URL + "/large.mp4", "video", "media_too_large", "make it smaller, or raise MAX_MEDIA_BYTES_IMAGE or MAX_MEDIA_BYTES_VIDEO"},
		{"http://169.254.169.254/latest/meta-data/", "image", "media_blocked_address", "AUTOPOST_OUTBOUND_ALLOW lists exceptions"},
		{"http://0x7f.1/", "image", "media_blocked_address", "may not be fetched from"},
	} {
		answer := h.Push(d, "secret-cms", house.Post("source_ref", c.url, "text", "x", "media", []any{map[string]any{"type": c.kind, "url": c.url}}))
		require.Equal(t, "accepted", answer.Text("status"))
		h.UntilTrue(waitForMedia, `select status = 'failed' from autopost.submissions where source_ref = $1`, c.url)
		for _, found := range []string{
			pgtest.Value[string](h.DB, `select last_error::text from autopost.submissions where source_ref = $1`, c.url),
			pgtest.Value[string](h.DB, `select e.error::text from autopost.events e join autopost.submissions s on s.submission_id::text = e.meta ->> 'submission_id'
				where e.action = 'submission_failed' and s.source_ref = $1`, c.url),
		} {
			require.Contains(t, found, c.code)
			require.Contains(t, found, c.says)
		}
	}
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.media_origin`))
}
