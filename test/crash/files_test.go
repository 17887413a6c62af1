package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/failpoint"
	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// filePoints are the failpoints of file jobs.
var filePoints = []failpoint.Point{failpoint.FileWritten, failpoint.FileStarted, failpoint.FileResult}

// jobsPerFolder is the number of file jobs of a test.
const jobsPerFolder = 2

// long is the first number at full size, else the second.
func long(full, sample int) int {
	if os.Getenv("AUTOPOST_LONG") != "" {
		return full
	}
	return sample
}

// folder makes a YouTube channel and a folder with approved jobs. It returns the root and the platform's id of the channel.
func folder(t *testing.T, h *harness.Harness) (root, channel string) {
	t.Helper()
	h.Workspace("news")
	channel = h.YouTubeChannel("news", "shows")
	root = h.Folder("sandbox")
	h.Exec(`select autopost.put_source('news', 'files', jsonb_build_object('kind', 'filebus', 'config_json', jsonb_build_object('root', $1::text,
		'channels', '{"youtube": "shows"}'::jsonb, 'interval_seconds', 1)), 'ann', 'a test', false)`, root)
	video := make([]byte, 64<<10)
	copy(video, "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")
	past := time.Now().Add(-time.Minute)
	for n := range jobsPerFolder {
		job := fmt.Sprint("job-", n)
		video[100] = byte(n)
		payload, err := json.Marshal(map[string]any{
			"job_id": job, "platform": "youtube", "publish_config": map[string]any{"title": "Title " + job, "description": "Text of " + job},
			"artifact_pointers": map[string]any{"video": "../../output/" + job + ".mp4"},
		})
		require.NoError(t, err)
		for name, content := range map[string][]byte{
			"output/" + job + ".mp4": video, "dist_artifacts/" + job + "/youtube.json": payload,
			"inbox/approve-" + job + "-youtube-n1.json": []byte(`{"job_id": "` + job + `", "platform": "youtube", "approved": true, "nonce": "n1"}`),
		} {
			target := filepath.Join(root, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
			require.NoError(t, os.WriteFile(target, content, 0o644))
			require.NoError(t, os.Chtimes(target, past, past))
		}
	}
	return root, channel
}

// published requires that each job is one video, with a state file that names it.
func published(t *testing.T, h *harness.Harness, root, channel string) {
	t.Helper()
	h.UntilTrue(`select count(*) = $1 and count(*) filter (where status = 'published' and files_at = updated_at) = $1 from autopost.publish_jobs`, jobsPerFolder)
	videos := map[string]string{}
	for _, v := range h.World.YouTube.Videos(channel) {
		require.NotContains(t, videos, v.Title, "one video for a job")
		videos[v.Title] = v.ID
	}
	require.Len(t, videos, jobsPerFolder)
	for n := range jobsPerFolder {
		dir := filepath.Join(root, "dist_artifacts", fmt.Sprint("job-", n))
		raw, err := os.ReadFile(filepath.Join(dir, "youtube.state.json"))
		require.NoError(t, err)
		var state map[string]string
		require.NoError(t, json.Unmarshal(raw, &state))
		require.Equal(t, videos[fmt.Sprint("Title job-", n)], state["platform_post_id"])
		require.NoFileExists(t, filepath.Join(dir, "youtube.status.json"))
	}
	require.Len(t, h.World.Log.Entries(sim.Filter{Method: "POST /upload/youtube/v3/videos"}), jobsPerFolder, "no second upload began")
	require.Equal(t, harness.Totals{Deliveries: jobsPerFolder, Sent: jobsPerFolder}, h.Judge("news"))
	h.Verified()
}

// The daemon dies with a state or status file half made, with a job in the queue, and with a published job without its
// state file. The next daemon completes each job; none is published twice.
func TestKilledWithAFileJob(t *testing.T) {
	t.Parallel()
	for _, point := range filePoints {
		for nth := 1; nth <= long(jobsPerFolder, 1); nth++ {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				t.Parallel()
				h := harness.New(t, harness.WithFailpoints)
				root, channel := folder(t, h)
				h.Exec(`update autopost.settings set value = '2' where key = 'pull_lease_seconds'`)
				d := h.ServeUntilDeath(append(quick, fmt.Sprintf("AUTOPOST_FAILPOINT=%s:%d", point, nth))...)
				require.True(t, d.Died(), "the point was not passed so often")
				h.Serve(quick...)
				published(t, h, root, channel)
			})
		}
	}
}

// The daemon dies in the middle of an upload, and while the answer of the platform is not recorded. Each job is one video.
func TestKilledWhileAJobIsUploaded(t *testing.T) {
	t.Parallel()
	points := []failpoint.Point{failpoint.Accepted, failpoint.HalfSent, failpoint.ReplyRead, failpoint.Committed}
	for _, point := range points[:long(len(points), 1)] {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			h := harness.New(t, harness.WithFailpoints)
			root, channel := folder(t, h)
			d := h.ServeUntilDeath(append(quick, fmt.Sprintf("AUTOPOST_FAILPOINT=%s:1", point))...)
			require.True(t, d.Died())
			h.Serve(quick...)
			published(t, h, root, channel)
		})
	}
}

// The database is a copy from before the publication; the folder is not. Its state files say what was published.
func TestStateFilesOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	root, channel := folder(t, h)
	h.Exec(`update autopost.channels set paused_until = now() + interval '1 hour'`)
	d := h.Serve(quick...)
	h.UntilTrue(`select count(*) = $1 from autopost.publish_jobs where status = 'publishing'`, jobsPerFolder)
	d.Kill()
	for n := range jobsPerFolder {
		job := fmt.Sprint("job-", n)
		require.NoError(t, os.WriteFile(filepath.Join(root, "dist_artifacts", job, "youtube.state.json"), []byte(`{"job_id": "`+job+`", "platform": "youtube", "status": "PUBLISHED",
			"published_at": "2026-02-08T12:30:00Z", "platform_post_id": "old-`+job+`"}`), 0o644))
	}
	h.Serve(quick...)
	h.UntilTrue(`select count(*) = $1 from autopost.publish_jobs where status = 'published' and imported`, jobsPerFolder)
	h.Exec(`update autopost.channels set paused_until = null`)
	h.UntilTrue(`select count(*) = $1 from autopost.deliveries where status = 'dead'`, jobsPerFolder)
	require.Empty(t, h.World.YouTube.Videos(channel), "nothing is uploaded again")
	require.Equal(t, []string{"old-job-0", "old-job-1"}, pgtest.Column[string](h.DB, `select platform_post_id from autopost.publish_jobs order by job_id`))
	h.Verified()
}
