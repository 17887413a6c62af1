package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/feeds"
	"autopost/internal/testing/disktest"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// uploading uploads a picture by the API, and returns the status and the problem.
func uploading(t *testing.T, d *harness.Daemon, key string) (status int, problem map[string]any) {
	t.Helper()
	_, content, _ := feeds.Generate("photo-2.png")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/api/v1/media?kind=image", strings.NewReader(string(content)))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &problem))
	return response.StatusCode, problem
}

// The disk of the media folder is full. Uploads are refused, posts with media wait, and all others
// go. No partial file is left. Readiness, the log and an alert report it. With space, everything goes on.
func TestMediaFolderOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := disktest.New(t, 16)
	h, _, _ := newsroom(t)
	h.Exec(`update autopost.retry_policies set base_ms = 200, cap_ms = 200 where code = 'media_no_room'`)
	var key struct{ Key string }
	require.NoError(t, json.Unmarshal([]byte(ok(t, h, "apikey", "add", "--workspace", "news", "--name", "test", "--role", "editor", "--json")), &key))
	d := h.Serve(each, "AUTOPOST_BLOB_URL=file://"+disk.Dir+"/media")
	disk.Fill()
	require.Equal(t, 202, h.Push(d, "secret-cms", harness.Post("text", "With a picture", "media", picture(h, "photo-1.png"))).Status)
	require.Equal(t, 202, h.Push(d, "secret-cms", harness.Post("text", "Without")).Status)
	status, problem := uploading(t, d, key.Key)
	require.Equal(t, http.StatusInsufficientStorage, status, problem)
	require.Contains(t, problem["detail"], "The operator must free disk space")
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)

	tries := func() int { return strings.Count(d.Log(), `"code":"media_no_room"`) }
	h.Until("it was tried more often than a source may fail", func() bool { return tries() > 8 })
	require.Equal(t, "fetching media_no_room", pgtest.Value[string](h.DB, `select status || ' ' || (last_error ->> 'code') from autopost.submissions`))
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.media_origin`))
	require.NoError(t, filepath.WalkDir(disk.Dir+"/media", func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasPrefix(path, disk.Dir+"/media/sha256") {
			t.Errorf("%s is there", path)
		}
		return err
	}))
	ready, err := h.Get(d.URL+"/readyz", "")
	require.NoError(t, err)
	require.Equal(t, "Not ready: storage.", ready.Text("detail"))
	require.Equal(t, 1, strings.Count(d.Log(), `"msg":"disk.full","disk":"media"`))
	h.UntilTrue(`select exists (select 1 from autopost.alerts where kind = 'disk_low' and severity = 'critical' and what like 'the disk of the media: 0.0 of 0.0 GB are free%')`)

	disk.Free()
	h.UntilTrue(`select count(*) = 4 from autopost.deliveries where status = 'sent'`)
	status, _ = uploading(t, d, key.Key)
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, harness.Totals{Deliveries: 4, Sent: 4}, h.Judge("news"))
	require.Zero(t, d.Stop())
	h.Verified()
}
