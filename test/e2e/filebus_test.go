package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// sandbox is a folder with file jobs for YouTube.
type sandbox struct {
	t       *testing.T
	h       *harness.Harness
	root    string
	channel string
}

// newSandbox makes a workspace with a YouTube channel and a source that watches a folder.
func newSandbox(t *testing.T, more map[string]any) *sandbox {
	t.Helper()
	h, channel := studio(t)
	s := &sandbox{t, h, h.Folder("sandbox"), channel}
	require.NoError(t, os.MkdirAll(filepath.Join(s.root, "inbox"), 0o755))
	config := map[string]any{"root": s.root, "channels": map[string]any{"youtube": "shows"}, "interval_seconds": 1}
	for key, value := range more {
		config[key] = value
	}
	h.Exec(`select autopost.put_source('news', 'files', jsonb_build_object('kind', 'filebus', 'config_json', $1::jsonb), 'ann', 'a test', false)`, config)
	return s
}

// file writes a file that was finished a while ago, whole at once.
func (s *sandbox) file(name string, content []byte) {
	s.t.Helper()
	target := filepath.Join(s.root, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(target), 0o755))
	require.NoError(s.t, os.WriteFile(target+".part", content, 0o644))
	past := time.Now().Add(-time.Minute)
	require.NoError(s.t, os.Chtimes(target+".part", past, past))
	require.NoError(s.t, os.Rename(target+".part", target))
}

// document writes a JSON file and returns its bytes.
func (s *sandbox) document(name string, content map[string]any) []byte {
	s.t.Helper()
	raw, err := json.MarshalIndent(content, "", "  ")
	require.NoError(s.t, err)
	s.file(name, raw)
	return raw
}

// output writes what a worker makes: the video, its subtitles and its thumbnail.
func (s *sandbox) output(job string, seed byte) (video, thumbnail []byte) {
	s.t.Helper()
	video = make([]byte, 300<<10)
	copy(video, "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")
	for i := 64; i < len(video); i++ {
		video[i] = byte(i*31>>3) + seed
	}
	_, thumbnail, _ = feeds.Generate("photo-1.png")
	s.file("output/"+job+"/final.mp4", video)
	s.file("output/"+job+"/final.srt", []byte("1\n00:00:00,000 --> 00:00:02,000\nMeow\n"))
	s.file("output/"+job+"/thumb.png", thumbnail)
	return video, thumbnail
}

// payload writes the payload of a job.
func (s *sandbox) payload(job, title string) []byte {
	s.t.Helper()
	return s.document("dist_artifacts/"+job+"/youtube.json", map[string]any{
		"job_id": job, "platform": "youtube",
		"publish_config": map[string]any{"title": title, "description": "Just a cat: " + title, "tags": []string{"cat", "lofi"}, "privacy": "unlisted", "subtitles_language": "en"},
		"artifact_pointers": map[string]any{
			"video": "../../output/" + job + "/final.mp4", "subtitles": "../../output/" + job + "/final.srt", "thumbnail": "../../output/" + job + "/thumb.png",
		},
		"lineage": map[string]any{"job_file": "../../jobs/" + job + ".job.json"},
	})
}

func (s *sandbox) approve(job, nonce string, more map[string]any) {
	s.t.Helper()
	content := map[string]any{
		"job_id": job, "platform": "youtube", "approved": true, "approved_at": "2026-02-08T12:25:00Z", "approved_by": "telegram:user:12345",
		"source": "telegram_bridge", "nonce": nonce,
	}
	for key, value := range more {
		content[key] = value
	}
	s.document("inbox/approve-"+job+"-youtube-"+nonce+".json", content)
}

// read reads a file of the sandbox; nil if it does not exist.
func (s *sandbox) read(name string) (content map[string]any) {
	raw, err := os.ReadFile(filepath.Join(s.root, name))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(raw, &content), "%s", raw)
	return content
}

// until waits for a status in the status file of a job.
func (s *sandbox) until(job, status string) {
	s.t.Helper()
	s.h.Until(job+" is "+status, func() bool { return s.read("dist_artifacts/" + job + "/youtube.status.json")["status"] == status })
}

// untilPublished waits for the state file of a job.
func (s *sandbox) untilPublished(job string) (state map[string]any) {
	s.t.Helper()
	s.h.Until(job+" is published", func() bool {
		state = s.read("dist_artifacts/" + job + "/youtube.state.json")
		return state != nil
	})
	return state
}

// A folder brings a job with a video, subtitles and a thumbnail. An approval file releases it. It becomes one video, and
// a state file says which.
func TestFileJobBecomesAVideo(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, nil)
	s.h.Serve()
	video, thumbnail := s.output("demo-dance-loop-v1", 1)
	payload := s.payload("demo-dance-loop-v1", "Cat Vibing")
	s.until("demo-dance-loop-v1", "waiting")
	require.Empty(t, s.h.World.YouTube.Videos(s.channel), "nothing goes out before its approval")
	s.approve("demo-dance-loop-v1", "msg_1", nil)
	state := s.untilPublished("demo-dance-loop-v1")

	videos := s.h.World.YouTube.Videos(s.channel)
	require.Len(t, videos, 1)
	v := videos[0]
	require.Equal(t, []any{"Cat Vibing", "Just a cat: Cat Vibing", []string{"cat", "lofi"}, "unlisted", []string{"en "}}, []any{v.Title, v.Description, v.Tags, v.Privacy, v.Captions})
	require.Equal(t, sim.Digest(video), v.Media.Digest)
	require.Equal(t, sim.Digest(thumbnail), v.Thumbnail.Digest)
	require.NotEmpty(t, state["published_at"])
	delete(state, "published_at")
	require.Equal(t, map[string]any{
		"job_id": "demo-dance-loop-v1", "platform": "youtube", "idempotency_key": "demo-dance-loop-v1_youtube", "status": "PUBLISHED",
		"platform_post_id": v.ID, "post_url": "https://www.youtube.com/watch?v=" + v.ID,
	}, state)
	s.h.Until("the status file is gone", func() bool { return s.read("dist_artifacts/demo-dance-loop-v1/youtube.status.json") == nil })
	kept, err := os.ReadFile(filepath.Join(s.root, "dist_artifacts/demo-dance-loop-v1/youtube.json"))
	require.NoError(t, err)
	require.Equal(t, payload, kept, "the payload is as it was")

	// The state file is derived: it comes again, and nothing is published again.
	require.NoError(t, os.Remove(filepath.Join(s.root, "dist_artifacts/demo-dance-loop-v1/youtube.state.json")))
	require.Equal(t, v.ID, s.untilPublished("demo-dance-loop-v1")["platform_post_id"])
	require.Len(t, s.h.World.Log.Entries(sim.Filter{Method: videoStart}), 1)
	require.Equal(t, harness.Totals{Deliveries: 1, Sent: 1}, s.h.Judge("news"))
	require.Equal(t, []string{"filebus_waiting", "filebus_approved", "filebus_publishing", "filebus_published"},
		pgtest.Column[string](s.h.DB, `select action from autopost.events where action like 'filebus%' order by ts, id`))
	s.h.Verified()
}

// refusals are the codes of refused files by their path.
func (s *sandbox) refusals() map[string]string {
	found := map[string]string{}
	for _, row := range pgtest.Column[[]string](s.h.DB, `select array[meta ->> 'path', error ->> 'code'] from autopost.events where action in ('filebus_refused', 'approval_refused') order by ts, id`) {
		found[row[0]] = row[1]
	}
	return found
}

// A folder has what it should not have: links, devices, odd names, half a file, state files of somebody else. Nothing is
// published twice, and each refusal has one event.
func TestFolderWithOddFiles(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, nil)
	h := s.h
	// What is there before the first scan.
	foreign := s.document("dist_artifacts/foreign/youtube.state.json", map[string]any{
		"job_id": "foreign", "platform": "youtube", "idempotency_key": "foreign_youtube", "status": "PUBLISHED", "published_at": "2026-02-08T12:30:00Z",
		"platform_post_id": "dQw4w9WgXcQ", "post_url": "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
	})
	s.output("foreign", 1)
	s.payload("foreign", "Foreign")
	s.approve("foreign", "n1", nil)
	s.file("dist_artifacts/bad name/youtube.json", []byte("{}"))
	require.NoError(t, os.Symlink("/etc", filepath.Join(s.root, "dist_artifacts", "linked")))
	s.output("stolen", 2)
	require.NoError(t, os.Remove(filepath.Join(s.root, "output/stolen/final.mp4")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(s.root, "output/stolen/final.mp4")))
	s.payload("stolen", "Stolen")
	s.file("dist_artifacts/half/youtube.json", []byte(`{"job_id": "half", "platf`))
	s.document("inbox/approve-half-youtube-n1.json", map[string]any{"job_id": "other", "platform": "youtube", "approved": true, "nonce": "n1"})
	h.Serve()
	s.until("stolen", "waiting")
	h.Until("the link is refused", func() bool {
		failure, _ := s.read("dist_artifacts/stolen/youtube.status.json")["error"].(map[string]any)
		return failure["code"] == "symbolic_link"
	})
	h.UntilTrue(`select count(*) = 1 from autopost.publish_jobs where job_id = 'foreign' and imported`)
	kept, err := os.ReadFile(filepath.Join(s.root, "dist_artifacts/foreign/youtube.state.json"))
	require.NoError(t, err)
	require.Equal(t, foreign, kept, "it is imported, and never overwritten")

	// Half a payload becomes a whole one.
	s.output("half", 3)
	s.payload("half", "Half")
	s.until("half", "waiting")
	s.approve("half", "n2", nil)
	half := s.untilPublished("half")["platform_post_id"]

	// An unreadable state file: the platform has the video of one job, and does not have that of the other.
	for job, title := range map[string]string{"twin": "Half", "absent": "Absent"} {
		s.output(job, 4)
		s.file("dist_artifacts/"+job+"/youtube.state.json", []byte(`{"job_id": "`+job+`", "status": "PUBL`))
		s.payload(job, title)
		s.approve(job, "n1", nil)
	}
	h.UntilTrue(`select exists (select 1 from autopost.publish_jobs where job_id = 'twin' and status = 'published' and platform_post_id = $1)`, half)
	h.UntilTrue(`select status in ('waiting', 'approved', 'publishing', 'published') and doubt ->> 'asked' = 'absent' from autopost.publish_jobs where job_id = 'absent'`)
	require.Zero(t, h.Run(nil, "filebus", "explain", "absent", "--workspace", "news").Code)
	h.UntilTrue(`select status = 'published' from autopost.publish_jobs where job_id = 'absent'`)

	// A payload that autopost writes after an approval.
	s.output("later", 5)
	run := h.Run(nil, "filebus", "approve", "later", "--platform", "youtube", "--workspace", "news")
	require.Zero(t, run.Code, run.Stderr)
	run = h.Run(nil, "filebus", "prepare", "later", "--platform", "youtube", "--title", "Later", "--video", "../../output/later/final.mp4", "--workspace", "news")
	require.Zero(t, run.Code, run.Stderr)
	s.untilPublished("later")
	require.Equal(t, "Later", s.read("dist_artifacts/later/youtube.json")["publish_config"].(map[string]any)["title"])
	require.Contains(t, h.Run(nil, "doctor", "--json").Stdout, "folder of news/files")
	require.Contains(t, h.Run(nil, "filebus", "status", "later", "--workspace", "news").Stdout, "published")

	var titles []string
	for _, v := range h.World.YouTube.Videos(s.channel) {
		titles = append(titles, v.Title)
	}
	require.ElementsMatch(t, []string{"Half", "Absent", "Later"}, titles)
	require.Equal(t, map[string]string{
		"dist_artifacts/bad name": "bad_name", "dist_artifacts/linked": "not_regular", "inbox/approve-half-youtube-n1.json": "name_mismatch",
	}, s.refusals())
	require.Equal(t, harness.Totals{Deliveries: 3, Sent: 3}, h.Judge("news"))
	h.Verified()
}
