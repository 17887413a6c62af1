package filebus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/media"
)

// readJob reads the state and the payload of a job and gives them to the database. Work that is finished is not
// repeated, unless fresh is set. It returns nil if the job has no payload that can be used now.
func (c *scan) readJob(ctx context.Context, job, platform string, fresh bool) (*Job, error) {
	dir := path.Join(c.options.DistDir, job)
	names := []string{path.Join(dir, platform+".state.json"), path.Join(dir, platform+".json")}
	marks := make([]string, 0, 2)
	for _, name := range names {
		info, err := c.folder.stat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, c.tryLater(ctx, name, "", err)
		}
		marks = append(marks, mark(info))
	}
	stated, doubted, err := c.readState(ctx, job, platform, names[0], marks[0])
	if err != nil || stated {
		return nil, err
	}
	if marks[1] == "" {
		return nil, nil // no payload
	}
	return c.readPayload(ctx, content{job: job, platform: platform, name: names[1], noState: marks[0] == "", marked: strings.Join(marks, " "), fresh: fresh || doubted})
}

// readState gives a state file to the database. stated means that the job needs no payload any more, doubted that the
// file is unreadable.
func (c *scan) readState(ctx context.Context, job, platform, name, marked string) (stated, doubted bool, err error) {
	key := job + "/" + platform + ".state"
	if marked == "" {
		delete(c.known.jobs, key)
		return false, false, nil
	}
	if c.known.jobs[key] == marked {
		return true, false, nil
	}
	raw, digest, err := c.folder.read(name, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	found, damaged := state{}, ""
	switch {
	case err != nil:
		damaged, digest = asRefusal(err).message, marked
	default:
		found, damaged = stateOf(raw, job, platform)
	}
	var answer Job
	if damaged == "" {
		answer, err = c.stage.cfg.Store.ImportPublishState(ctx, c.source.WorkspaceID, c.source.SourceID, found)
	} else {
		answer, err = c.stage.cfg.Store.ImportPublishState(ctx, c.source.WorkspaceID, c.source.SourceID, map[string]any{
			"job_id": job, "platform": platform, "damaged": damaged, "digest": digest,
		})
	}
	if refused := refusedArgument(err); refused != nil {
		return true, false, c.refuse(ctx, name, digest, refused)
	}
	if err != nil {
		return false, false, fmt.Errorf("import publish state job=%s: %w", job, err)
	}
	if answer.Status != "published" {
		return answer.Reason == "publishing", damaged != "", nil
	}
	if damaged != "" { // the database is the authority: the file is made again
		return true, false, c.writeFiles(ctx, answer)
	}
	if !sameState(answer.File, found) {
		return true, false, c.refuse(ctx, name, digest, &refusal{"state_differs", "the state file must name the post that the database knows; compare both and remove the wrong one"})
	}
	c.known.jobs[key] = marked
	if answer.Applied || answer.FilesAt != answer.UpdatedAt {
		return true, false, c.writeFiles(ctx, answer)
	}
	return true, false, nil
}

// sameState reports whether a state file names the post of the database.
func sameState(raw json.RawMessage, found state) bool {
	var kept state
	return json.Unmarshal(raw, &kept) == nil && kept.PostID == found.PostID
}

// content is a payload file to read.
type content struct {
	job, platform, name string
	// noState means that the job has no state file.
	noState bool
	// marked identifies the state and payload files as they are now.
	marked string
	// fresh means that also finished work is done.
	fresh bool
}

func (c *scan) readPayload(ctx context.Context, file content) (*Job, error) {
	raw, digest, err := c.folder.read(file.name, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var p payload
	var document map[string]any
	if err == nil {
		err = decode(raw, &p)
	}
	if err == nil {
		err = decode(raw, &document)
	}
	if err == nil && (p.JobID != file.job || p.Platform != file.platform) {
		err = &refusal{"name_mismatch", fmt.Sprintf("job_id and platform must be those of the path, %s and %s; correct the file or its name", file.job, file.platform)}
	}
	if err != nil {
		return nil, c.tryLater(ctx, file.name, digest, err)
	}
	targets, err := c.targets(p, file.job)
	if err != nil {
		return nil, c.tryLater(ctx, file.name, digest, err)
	}
	stats, missing := c.statAll(targets)
	key := file.job + "/" + file.platform
	marked := file.marked + " " + digest + " " + strings.Join(stats, " ")
	if !file.fresh && missing == nil && c.known.jobs[key] == marked {
		return nil, nil
	}
	artifacts := map[string]Artifact{}
	if missing == nil {
		artifacts, missing, err = c.copyAll(ctx, file, targets)
		if err != nil {
			return nil, err
		}
	}
	return c.put(ctx, file, document, putFile{digest: digest, artifacts: artifacts, missing: missing, marked: marked})
}

// targets are the artifacts that the payload names, by kind.
func (c *scan) targets(p payload, job string) (map[string]string, error) {
	targets := map[string]string{}
	for name := range artifactKinds {
		target, err := p.pointer(job, c.options.DistDir, name)
		if err != nil {
			return nil, err
		}
		if target != "" {
			targets[name] = target
		}
	}
	if targets["video"] == "" {
		return nil, &refusal{"wrong_type", "artifact_pointers.video must be a path; name the video"}
	}
	return targets, nil
}

// statAll returns the marks of the artifacts, or why one of them cannot be used.
func (c *scan) statAll(targets map[string]string) (marks []string, missing *refusal) {
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		info, err := c.folder.regular(targets[name], c.options.MaxBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &refusal{"artifact_missing", fmt.Sprintf("artifact_pointers.%s must name a file, and %q does not exist; write it, or correct the path", name, cut(targets[name]))}
		case err != nil:
			return nil, asRefusal(err)
		}
		marks = append(marks, name+" "+targets[name]+" "+mark(info))
	}
	return marks, nil
}

// putFile is what the engine adds to a payload.
type putFile struct {
	digest    string
	artifacts map[string]Artifact
	missing   *refusal
	marked    string
}

// put gives a payload to the database and writes the files of the job.
func (c *scan) put(ctx context.Context, file content, document map[string]any, f putFile) (*Job, error) {
	added := map[string]any{"digest": f.digest, "artifacts": f.artifacts, "complete": f.missing == nil, "no_state": file.noState}
	if f.missing != nil {
		added["error"] = map[string]string{"code": f.missing.code, "message": f.missing.message}
		c.again = true
		if waits, _ := c.halfWritten(file.name, f.digest+f.missing.code); !waits {
			c.again = false
			if err := c.refuse(ctx, file.name, f.digest, f.missing); err != nil {
				return nil, err
			}
		}
	}
	document["file"] = added
	job, err := c.stage.cfg.Store.PutPublishJob(ctx, c.source.WorkspaceID, c.source.SourceID, document)
	if refused := refusedArgument(err); refused != nil {
		return nil, c.refuse(ctx, file.name, f.digest, refused)
	}
	if err != nil {
		return nil, fmt.Errorf("put publish job=%s: %w", file.job, err)
	}
	key := file.job + "/" + file.platform
	switch {
	case job.Reason == "other_source":
		return nil, c.refuse(ctx, file.name, f.digest, &refusal{"other_source", "the job must have one source, and another source has it already; give it another name"})
	case job.Reason == "published":
		c.known.jobs[key] = f.marked
		if err := c.refuse(ctx, file.name, f.digest, &refusal{"published", "the job must not change after it was published; give the new content another name"}); err != nil {
			return nil, err
		}
	case f.missing == nil && job.Reason != "publishing" && job.Reason != "unknown":
		c.known.jobs[key] = f.marked
	}
	if job.Applied && job.Reason == "" {
		c.stage.cfg.Log.InfoContext(ctx, "files.job_read", "workspace_id", c.source.WorkspaceID, "source_id", c.source.SourceID, "job_id", job.JobID, "platform", job.Platform, "status", job.Status)
	}
	if job.Status == "published" && file.noState {
		return nil, c.writeFiles(ctx, job)
	}
	return &job, nil
}

// refusedArgument is the refusal of a file that the database refuses for its content; nil for another error.
func refusedArgument(err error) *refusal {
	wrong, ok := errors.AsType[*autopost.ArgumentError](err)
	if !ok || wrong.Argument == "source_id" || wrong.Argument == "workspace_id" {
		return nil
	}
	return &refusal{"not_taken", cut(wrong.Error())}
}

// copyAll copies the artifacts into the media store. An unchanged one that is there already is not copied again.
func (c *scan) copyAll(ctx context.Context, file content, targets map[string]string) (map[string]Artifact, *refusal, error) {
	recorded, err := c.recorded(ctx, file.job, file.platform)
	if err != nil {
		return nil, nil, err
	}
	artifacts := map[string]Artifact{}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		copied, missing, err := c.copyOne(ctx, name, targets[name], recorded[name])
		if err != nil || missing != nil {
			return nil, missing, err
		}
		artifacts[name] = copied
	}
	return artifacts, nil, nil
}

// copyOne copies one artifact. A file that changes meanwhile, or is too young, is tried again later.
func (c *scan) copyOne(ctx context.Context, kind, name string, recorded Artifact) (Artifact, *refusal, error) {
	source, before, err := c.folder.open(name, c.options.MaxBytes)
	if err != nil {
		return Artifact{}, asRefusal(err), nil
	}
	defer func() { _ = source.Close() }()
	found := Artifact{Path: name, Size: before.Size(), Modified: strconv.FormatInt(before.ModTime().UnixNano(), 10)}
	if recorded.Path == found.Path && recorded.Size == found.Size && recorded.Modified == found.Modified {
		if whole, err := c.stage.cfg.Contents.Has(ctx, recorded.BlobRef, recorded.Size); whole || err != nil {
			return recorded, nil, err
		}
	}
	if age := c.now.Sub(before.ModTime()); age >= 0 && age < settleTime {
		return Artifact{}, &refusal{"artifact_young", fmt.Sprintf("%q must not change any more; it was written a moment ago", cut(name))}, nil
	}
	origin, err := c.stage.cfg.Contents.Put(ctx, source, artifactKinds[kind], media.Limits{ImageBytes: c.options.MaxBytes, VideoBytes: c.options.MaxBytes})
	if rejected, ok := errors.AsType[*media.Rejection](err); ok {
		return Artifact{}, &refusal{"artifact_invalid", fmt.Sprintf("artifact_pointers.%s: %s", kind, rejected.Message)}, nil
	}
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("copy %s of a job: %w", kind, err)
	}
	after, err := source.Stat()
	if err != nil || mark(after) != mark(before) || origin.SizeBytes != before.Size() {
		return Artifact{}, &refusal{"artifact_young", fmt.Sprintf("%q must not change while it is copied", cut(name))}, nil
	}
	answer, err := c.stage.cfg.Store.PutJobArtifact(ctx, c.source.WorkspaceID, c.source.SourceID, origin)
	switch {
	case err != nil:
		return Artifact{}, nil, fmt.Errorf("register %s of a job: %w", kind, err)
	case !answer.Applied:
		return Artifact{}, nil, &pull.Failure{Code: "filebus_busy", Message: "the content is being removed from the media store; it is copied again later"}
	}
	// A long copy outlives the lease.
	if _, err := c.stage.cfg.Store.ClaimFileSource(ctx, c.source.WorkspaceID, c.source.SourceID, c.stage.cfg.RunID); err != nil {
		return Artifact{}, nil, fmt.Errorf("renew the lease of source=%s: %w", c.source.SourceID, err)
	}
	found.BlobRef = origin.BlobRef
	return found, nil, nil
}
