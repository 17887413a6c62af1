package filebus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"autopost/internal/ingest/pull"
)

// followed is how many jobs one call of follow_publish_jobs returns.
const followed = 100

// scan is one pass over the folder of a source.
type scan struct {
	stage   *Stage
	source  Source
	options Options
	known   *memory
	folder  *folder
	now     time.Time
	// refused are the files that were refused in this scan, also those that were reported before.
	refused map[string]bool
	// seen are the half-written files of this scan.
	seen map[string]bool
	// again means that something was not ready: the source is scanned again soon.
	again bool
}

func newScan(s *Stage, source Source, claim Claim, known *memory) *scan {
	o := claim.Options
	o.DistDir = cmp.Or(o.DistDir, "dist_artifacts")
	o.InboxDir = cmp.Or(o.InboxDir, "inbox")
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	return &scan{stage: s, source: source, options: o, known: known, now: time.Now(), refused: map[string]bool{}, seen: map[string]bool{}}
}

func (c *scan) refusedPaths() []string { return slices.Sorted(maps.Keys(c.refused)) }

// run reads all jobs, then all approvals, and then does what they lead to.
func (c *scan) run(ctx context.Context) error {
	opened, err := openFolder(c.options.Root)
	if err != nil {
		return &pull.Failure{Code: "filebus_root", Message: fmt.Sprintf("the root must be a folder that this daemon may open, got %q: %v; create it, or correct root of the source", c.options.Root, unwrapped(err))}
	}
	c.folder = opened
	c.folder.fault = c.stage.cfg.fault
	defer func() { _ = c.folder.Close() }()
	watched := map[string]bool{}
	c.watch(watched, ".", c.options.DistDir, c.options.InboxDir)
	jobs, err := c.folder.list(c.options.DistDir)
	if err != nil {
		return c.unreadable(err)
	}
	for _, entry := range jobs {
		if err := c.readJobs(ctx, entry, watched); err != nil {
			return err
		}
	}
	if err := c.readApprovals(ctx); err != nil {
		return err
	}
	c.stage.watcher.forget(c.source.key(), watched)
	maps.DeleteFunc(c.known.since, func(key string, _ time.Time) bool { return !c.seen[key] })
	return c.follow(ctx)
}

// watch adds folders to the watches.
func (c *scan) watch(watched map[string]bool, names ...string) {
	for _, name := range names {
		dir := filepath.Join(c.options.Root, filepath.FromSlash(name))
		watched[dir] = true
		c.stage.watcher.watch(c.source.key(), dir)
	}
}

// unreadable is the failure of a scan because of a folder.
func (c *scan) unreadable(err error) error {
	return &pull.Failure{Code: "filebus_folder", Message: fmt.Sprintf("the folders of the source must be readable: %v; correct its rights, or dist_dir and inbox_dir", unwrapped(err))}
}

// unwrapped leaves out the absolute path of an error of a file.
func unwrapped(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

// readJobs reads the files of one job.
func (c *scan) readJobs(ctx context.Context, entry fs.DirEntry, watched map[string]bool) error {
	job, dir := entry.Name(), path.Join(c.options.DistDir, entry.Name())
	switch {
	case entry.Type().IsRegular():
		return nil // no job
	case !jobName.MatchString(job):
		return c.refuse(ctx, dir, "", &refusal{"bad_name", "the folder of a job must have a name of 1 to 128 letters, digits, dots, dashes and underscores; rename it"})
	case !entry.IsDir():
		return c.refuse(ctx, dir, "", &refusal{"not_regular", fmt.Sprintf("a job must be a folder, got %s; put the folder itself there", entry.Type())})
	}
	files, err := c.folder.list(dir)
	if err != nil {
		return c.tryLater(ctx, dir, "", err)
	}
	c.watch(watched, dir)
	platforms := map[string]bool{}
	for _, file := range files {
		if m := jobFile.FindStringSubmatch(file.Name()); m != nil && m[2] != ".status" {
			platforms[m[1]] = true
		}
	}
	for _, platform := range slices.Sorted(maps.Keys(platforms)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := c.readJob(ctx, job, platform, false); err != nil {
			return err
		}
	}
	return nil
}

// follow does what the database has to do for the jobs of the source: prepared payloads, starts, questions to
// platforms, and files.
func (c *scan) follow(ctx context.Context) error {
	jobs, err := c.stage.cfg.Store.FollowPublishJobs(ctx, c.source.WorkspaceID, c.source.SourceID, followed)
	if err != nil {
		return fmt.Errorf("follow publish jobs source=%s: %w", c.source.SourceID, err)
	}
	for _, job := range jobs {
		if err := c.advance(ctx, job); err != nil {
			return err
		}
	}
	c.again = c.again || len(jobs) == followed
	return nil
}

// advance does the work for one job.
func (c *scan) advance(ctx context.Context, job Job) error {
	switch {
	case len(job.Prepared) > 0 && string(job.Prepared) != "null":
		return c.writePayload(job)
	case job.Status == "approved":
		return c.start(ctx, job)
	case job.Status == "unknown" && job.Doubt != nil && job.Doubt.Asked == "":
		if err := c.ask(ctx, job); err != nil {
			return err
		}
	}
	return c.writeFiles(ctx, job)
}

// refuse reports a file; the database reports each content once.
func (c *scan) refuse(ctx context.Context, name, digest string, refused *refusal) error {
	return c.refuseAs(ctx, name, digest, refused, false)
}

func (c *scan) refuseAs(ctx context.Context, name, digest string, refused *refusal, isApproval bool) error {
	c.refused[name] = true
	first, err := c.stage.cfg.Store.RefuseFile(ctx, c.source.WorkspaceID, c.source.SourceID, map[string]any{
		"path": cut(name), "digest": cmp.Or(digest, refused.code), "code": refused.code, "message": refused.message, "approval": isApproval,
	})
	if err != nil {
		return fmt.Errorf("refuse file source=%s: %w", c.source.SourceID, err)
	}
	if first {
		c.stage.cfg.Log.WarnContext(ctx, "files.refused", "workspace_id", c.source.WorkspaceID, "source_id", c.source.SourceID, "path", cut(name), "code", refused.code, "message", refused.message)
	}
	return nil
}

// tryLater handles a file that cannot be read now. A half-written one is tried for Patience, then refused. Another
// refusal is reported at once.
func (c *scan) tryLater(ctx context.Context, name, digest string, cause error) error {
	if refused, ok := errors.AsType[*refusal](cause); ok {
		return c.refuse(ctx, name, digest, refused)
	}
	if waits, err := c.halfWritten(name, digest); waits {
		return err
	}
	code := "unreadable"
	if errors.Is(cause, errUnfinished) {
		code = "not_json"
	}
	return c.refuse(ctx, name, digest, &refusal{code, fmt.Sprintf("the file must be complete and readable: %v; write it under another name and rename it", unwrapped(cause))})
}

// halfWritten reports whether a file still has time to become complete.
func (c *scan) halfWritten(name, digest string) (waits bool, err error) {
	key := name + "\x00" + digest
	c.seen[key] = true
	since, noted := c.known.since[key]
	if !noted {
		since = c.now
		c.known.since[key] = since
	}
	if c.now.Sub(since) < c.stage.cfg.Patience {
		c.again = true
		return true, nil
	}
	return false, nil
}

// readApprovals reads the approval files of the inbox. A refused one is tried again at each scan, because a job may
// change; the database reports it once.
func (c *scan) readApprovals(ctx context.Context) error {
	entries, err := c.folder.list(c.options.InboxDir)
	if err != nil {
		return c.unreadable(err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	listed := map[string]bool{}
	for _, entry := range entries {
		name := path.Join(c.options.InboxDir, entry.Name())
		if !approvalFile.MatchString(entry.Name()) {
			continue
		}
		listed[name] = true
		if err := c.readApproval(ctx, name); err != nil {
			return err
		}
	}
	maps.DeleteFunc(c.known.approvals, func(name, _ string) bool { return !listed[name] })
	return nil
}

func (c *scan) readApproval(ctx context.Context, name string) error {
	info, err := c.folder.regular(name, maxNote)
	if err == nil && c.known.approvals[name] == mark(info) {
		return nil
	}
	var raw []byte
	var digest string
	if err == nil {
		raw, digest, err = c.folder.read(name, maxNote)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // consumed by somebody else
	}
	var a approval
	if err == nil {
		a, err = approvalOf(raw, path.Base(name))
	}
	if err != nil {
		if waits, _ := c.isUnfinished(name, digest, err); waits {
			return nil
		}
		return c.refuseAs(ctx, name, digest, asRefusal(err), true)
	}
	signed, err := c.verify(ctx, a)
	if err != nil {
		return err
	}
	answer, err := c.stage.cfg.Store.ReceiveApproval(ctx, c.source.WorkspaceID, c.source.SourceID, map[string]any{
		"job_id": a.JobID, "platform": a.Platform, "approved": *a.Approved, "nonce": a.Nonce, "approved_by": given(a.ApprovedBy), "source": given(a.Source),
		"approved_at": given(a.ApprovedAt), "payload_digest": given(a.PayloadDigest), "expires_at": given(a.ExpiresAt), "path": name, "file_digest": digest, "signed": signed,
	})
	if refused := refusedArgument(err); refused != nil {
		return c.refuseAs(ctx, name, digest, refused, true)
	}
	if err != nil {
		return fmt.Errorf("receive approval source=%s: %w", c.source.SourceID, err)
	}
	switch {
	case answer.Applied || answer.Reason == "repeated" || answer.Reason == "published":
		c.known.approvals[name] = mark(info)
	default:
		c.refused[name] = true
	}
	if answer.Applied || answer.First {
		c.stage.cfg.Log.InfoContext(ctx, "files.approval_read", "workspace_id", c.source.WorkspaceID, "source_id", c.source.SourceID, "job_id", a.JobID,
			"platform", a.Platform, "applied", answer.Applied, "reason", answer.Reason, "status", answer.Status)
	}
	return nil
}

// isUnfinished reports whether an error means a half-written file that still has time.
func (c *scan) isUnfinished(name, digest string, err error) (bool, error) {
	if _, ok := errors.AsType[*refusal](err); ok {
		return false, nil
	}
	return c.halfWritten(name, digest)
}

func asRefusal(err error) *refusal {
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused
	}
	code := "unreadable"
	if errors.Is(err, errUnfinished) {
		code = "not_json"
	}
	return &refusal{code, fmt.Sprintf("the file must be complete and readable: %v; write it under another name and rename it", unwrapped(err))}
}

// given is a text or null.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// recorded returns the artifacts of a job that are in the media store.
func (c *scan) recorded(ctx context.Context, job, platform string) (map[string]Artifact, error) {
	raw, err := c.stage.cfg.Store.GetPublishJob(ctx, c.source.WorkspaceID, job, platform)
	if err != nil || raw == nil {
		return nil, err
	}
	var row struct {
		Artifacts map[string]Artifact `json:"artifacts"`
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, fmt.Errorf("read job %s: %w", job, err)
	}
	return row.Artifacts, nil
}
