package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"autopost/internal/sim"
	"autopost/internal/sim/youtube"
)

// demoYouTube is the address of the upload requests in the log of the simulator.
const demoYouTube = "POST /upload/youtube/v3/videos"

// fileJob writes a job into a folder, releases it by an approval file, and reads the state file. The platform gets one video.
func (d *demo) fileJob(ctx context.Context) (string, error) {
	channel := "UCdemo" + d.run
	root := filepath.Join(d.dir, "demo-sandbox-"+d.run)
	if err := d.addVideoChannel(ctx, channel, root); err != nil {
		return "", err
	}
	job := "cat-" + d.run
	if err := writeJob(root, job); err != nil {
		return "", err
	}
	d.report.clock(time.Now(), "folder: payload and video of job %s written", job)
	dist := filepath.Join(root, "dist_artifacts", job)
	if err := awaitFile(ctx, filepath.Join(dist, "youtube.status.json"), `"waiting"`); err != nil {
		return "", err
	}
	if n := len(d.sims.YouTube.Videos(channel)); n > 0 {
		return "", fmt.Errorf("%d videos before the approval", n)
	}
	d.report.clock(time.Now(), "status file: waiting; the platform has no video")
	approval := []byte(`{"job_id": "` + job + `", "platform": "youtube", "approved": true, "approved_by": "demo", "nonce": "1"}`)
	if err := writeWhole(filepath.Join(root, "inbox", "approve-"+job+"-youtube-1.json"), approval); err != nil {
		return "", err
	}
	released := time.Now()
	d.report.clock(released, "folder: approval file written")
	state := filepath.Join(dist, "youtube.state.json")
	if err := awaitFile(ctx, state, `"PUBLISHED"`); err != nil {
		return "", err
	}
	raw, err := os.ReadFile(state)
	if err != nil {
		return "", err
	}
	var kept struct {
		PostID string `json:"platform_post_id"`
		URL    string `json:"post_url"`
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		return "", fmt.Errorf("read the state file: %w", err)
	}
	videos, uploads := d.sims.YouTube.Videos(channel), d.sims.Log.Entries(sim.Filter{Method: demoYouTube})
	for _, e := range uploads {
		d.report.clock(e.Start, "simulator: %s %s: %d", e.Platform, e.Method, e.Status)
	}
	d.report.clock(time.Now(), "state file: PUBLISHED as %s", kept.URL)
	if len(videos) != 1 || videos[0].ID != kept.PostID || len(uploads) != 1 {
		return "", fmt.Errorf("the platform has %d videos after %d uploads, not the one of the state file", len(videos), len(uploads))
	}
	return fmt.Sprintf("waited for its approval; one upload, one video %s %.1f s after the approval file; the state file names it", kept.PostID, time.Since(released).Seconds()), nil
}

// addVideoChannel adds a channel of the simulated YouTube, and a source that watches the folder.
func (d *demo) addVideoChannel(ctx context.Context, channel, root string) error {
	project := youtube.Project{ID: "demo-" + d.run, ClientID: "demo-client-" + d.run, ClientSecret: "demo-client-secret"}
	if err := d.sims.YouTube.AddProject(project); err != nil {
		return err
	}
	if err := d.sims.YouTube.AddChannel(youtube.Channel{ID: channel, Title: "The demo"}); err != nil {
		return err
	}
	refresh, err := d.sims.YouTube.Grant(project.ID, channel, youtube.ScopeAll+" "+youtube.ScopeUpload)
	if err != nil {
		return err
	}
	secret, err := json.Marshal(map[string]string{"client_id": project.ClientID, "client_secret": project.ClientSecret, "refresh_token": refresh})
	if err != nil {
		return err
	}
	file := filepath.Join(d.dir, "demo-credential-google-"+d.run)
	if err := os.WriteFile(file, secret, 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "inbox"), 0o755); err != nil {
		return err
	}
	name := sqlText("youtube-" + d.run)
	return d.rows(ctx, fmt.Sprintf(`
		insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values (%[1]s, %[2]s, 'youtube', %[3]s);
		insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, route_filter)
			values (%[1]s, %[2]s, 'youtube', %[4]s, %[2]s, %[2]s, '{"include_any": ["cat"]}');
		insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
			values (%[1]s, %[2]s, 'filebus', jsonb_build_object('root', %[5]s, 'channels', jsonb_build_object('youtube', %[2]s)));
		insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values (%[1]s, %[2]s, 'pull_source', %[2]s);`,
		sqlText(workspaceID), name, sqlText("file:"+file), sqlText(channel), sqlText(root)))
}

// writeJob writes a video and the payload of a job.
func writeJob(root, job string) error {
	video := append([]byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"+job), make([]byte, 256<<10)...)
	payload, err := json.Marshal(map[string]any{
		"job_id": job, "platform": "youtube",
		"publish_config":    map[string]any{"title": "Cat Vibing " + job, "description": "Just a cat. #cat", "tags": []string{"cat"}, "privacy": "public"},
		"artifact_pointers": map[string]any{"video": "../../output/" + job + "/final.mp4", "subtitles": nil, "thumbnail": nil},
	})
	if err != nil {
		return err
	}
	if err := writeWhole(filepath.Join(root, "output", job, "final.mp4"), video); err != nil {
		return err
	}
	return writeWhole(filepath.Join(root, "dist_artifacts", job, "youtube.json"), payload)
}

// writeWhole writes a file under another name and renames it.
func writeWhole(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name+".part", content, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

// awaitFile waits until a file has a text.
func awaitFile(ctx context.Context, name, text string) error {
	return await(ctx, filepath.Base(name)+" has "+text, func(context.Context) (bool, error) {
		raw, err := os.ReadFile(name)
		return err == nil && bytes.Contains(raw, []byte(text)), nil
	})
}
