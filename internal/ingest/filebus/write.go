package filebus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"autopost/internal/failpoint"
)

// start reads an approved job once more and starts it if it is still what was approved.
func (c *scan) start(ctx context.Context, approved Job) error {
	job, err := c.readJob(ctx, approved.JobID, approved.Platform, true)
	if err != nil {
		return err
	}
	if job == nil || job.Status != "approved" || job.Digest != approved.Digest || !c.ready(*job) {
		return c.writeFiles(ctx, approved)
	}
	started, err := c.stage.cfg.Store.StartPublishJob(ctx, c.source.WorkspaceID, job.JobID, job.Platform, job.Digest)
	if err != nil {
		return fmt.Errorf("start publish job=%s: %w", job.JobID, err)
	}
	failpoint.Hit(failpoint.FileStarted)
	c.stage.cfg.Log.InfoContext(ctx, "files.job_started", "workspace_id", c.source.WorkspaceID, "source_id", c.source.SourceID, "job_id", job.JobID,
		"platform", job.Platform, "applied", started.Applied, "reason", started.Reason, "status", started.Status)
	return c.writeFiles(ctx, started)
}

// ready reports whether all artifacts of a job are still the files that were copied.
func (c *scan) ready(job Job) bool {
	for _, artifact := range job.Artifacts {
		info, err := c.folder.regular(artifact.Path, c.options.MaxBytes)
		if err != nil || info.Size() != artifact.Size || fmt.Sprint(info.ModTime().UnixNano()) != artifact.Modified {
			return false
		}
	}
	return true
}

// ask asks the platform about a job with an unreadable state file.
func (c *scan) ask(ctx context.Context, job Job) error {
	if c.stage.cfg.Finder == nil || !job.Complete || c.now.Sub(c.known.asked[job.key()]) < lookupPause {
		return nil
	}
	c.known.asked[job.key()] = c.now
	verdict, at := c.stage.cfg.Finder.FindJob(ctx, c.source.WorkspaceID, job.JobID, job.Platform)
	var answer any
	switch {
	case verdict.Found:
		answer = map[string]any{"job_id": job.JobID, "platform": job.Platform, "status": "PUBLISHED", "published_at": at.UTC().Format(time.RFC3339Nano),
			"platform_post_id": verdict.ProviderMessageID, "post_url": address(verdict.Raw)}
	case verdict.Absent:
		answer = map[string]any{"job_id": job.JobID, "platform": job.Platform, "damaged": job.Doubt.Reason, "digest": job.Doubt.Digest, "asked": "absent"}
	default:
		message := "the platform cannot be asked"
		if verdict.Error != nil {
			message = verdict.Error.Message
		}
		c.stage.cfg.Log.WarnContext(ctx, "files.job_not_found_out", "workspace_id", c.source.WorkspaceID, "job_id", job.JobID, "platform", job.Platform, "message", message)
		return nil
	}
	c.again = true
	if _, err := c.stage.cfg.Store.ImportPublishState(ctx, c.source.WorkspaceID, c.source.SourceID, answer); err != nil {
		return fmt.Errorf("import publish state job=%s: %w", job.JobID, err)
	}
	return nil
}

// address is the URL in the answer of a platform; null if it has none.
func address(raw json.RawMessage) *string {
	var answer struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return nil
	}
	return given(answer.URL)
}

// writePayload writes the payload of a prepared job. A payload that is there already wins.
func (c *scan) writePayload(job Job) error {
	dir := path.Join(c.options.DistDir, job.JobID)
	name := path.Join(dir, job.Platform+".json")
	c.again = true
	if _, err := c.folder.stat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil // the next scan reads it
	}
	if err := c.folder.makeFolder(dir); err != nil {
		return c.unreadable(err)
	}
	if err := c.folder.write(name, document(job.Prepared)); err != nil {
		return c.unreadable(err)
	}
	return nil
}

// writeFiles writes the state file of a published job, or the status file of another one, and records that.
func (c *scan) writeFiles(ctx context.Context, job Job) error {
	if job.JobID == "" || len(job.File) == 0 {
		return nil
	}
	dir := path.Join(c.options.DistDir, job.JobID)
	err := c.writeInto(dir, job)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the folder was removed: it gets its files when it is there again
	}
	if err != nil {
		return c.unreadable(err)
	}
	if job.FilesAt == job.UpdatedAt {
		return nil
	}
	if err := c.stage.cfg.Store.RecordJobFiles(ctx, c.source.WorkspaceID, job.JobID, job.Platform, job.UpdatedAt); err != nil {
		return fmt.Errorf("record job files job=%s: %w", job.JobID, err)
	}
	return nil
}

func (c *scan) writeInto(dir string, job Job) error {
	if _, err := c.folder.stat(dir); err != nil {
		return err
	}
	status := path.Join(dir, job.Platform+".status.json")
	if job.Status != "published" {
		if kept, _, err := c.folder.read(status, maxNote); err == nil && bytes.Equal(kept, document(job.File)) {
			return nil
		}
		return c.folder.write(status, document(job.File))
	}
	failpoint.Hit(failpoint.FileResult)
	delete(c.known.jobs, job.key()) // a removed state file is made again
	name := path.Join(dir, job.Platform+".state.json")
	if err := c.writeState(name, job); err != nil {
		return err
	}
	return c.folder.remove(status)
}

// writeState writes a state file. A readable one stays as it is; an unreadable one is kept under another name.
func (c *scan) writeState(name string, job Job) error {
	raw, _, err := c.folder.read(name, maxNote)
	if err == nil {
		if _, damaged := stateOf(raw, job.JobID, job.Platform); damaged == "" {
			return nil
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if err := c.folder.move(name, name+".damaged"); err != nil {
			return err
		}
	}
	return c.folder.write(name, document(job.File))
}

// document is a JSON document for people.
func document(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return append(raw, '\n')
	}
	out.WriteByte('\n')
	return out.Bytes()
}
