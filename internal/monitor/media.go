package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"autopost/internal/media"
)

// Bucket is the media store. *media.Store implements it.
type Bucket interface {
	Objects(ctx context.Context, then time.Time, visit func([]media.Object) error) error
	Remove(ctx context.Context, blobRef string) error
	Temporary(ctx context.Context, then time.Time, dryRun bool) (count int, size int64, err error)
	// SweepRaw removes raw payloads of days before since (YYYYMMDD).
	SweepRaw(ctx context.Context, since string, dryRun bool) (count int, size int64, err error)
}

// MediaSweep removes unneeded media: content that nothing refers to after its retention time, objects without a
// row, and files of dead writers. If it is killed, the next sweep finds the rest; a row never lacks its object.
type MediaSweep struct {
	Store  MediaStore
	Bucket Bucket
}

const (
	// originsPerCall bounds the rows of one query; originsShown bounds those of a dry run.
	originsPerCall = 100
	originsShown   = 10_000
	// strayAge is the least age of an object without a row, or of a temporary file: after a day its writer will not
	// register it.
	strayAge = 24 * time.Hour
	// removalTime bounds the time between the permission to remove an object and its removal. The function
	// media_removal_time of the database is far longer.
	removalTime = time.Minute
)

// Swept counts the objects that a sweep removed, or would remove.
type Swept struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (s *Swept) add(bytes int64) {
	s.Count++
	s.Bytes += bytes
}

// SweepUnreferenced removes media that workspaces no longer need. A failure for one workspace does not stop the
// others.
func (s *MediaSweep) SweepUnreferenced(ctx context.Context, dryRun bool) (swept Swept, err error) {
	workspaces, err := listWorkspaces(ctx, func(ctx context.Context) ([]string, error) { return s.Store.ListServedWorkspaces(ctx, true) })
	if err != nil {
		return swept, err
	}
	var failed []error
	for _, workspace := range workspaces {
		if err := s.sweepWorkspace(ctx, workspace, dryRun, &swept); err != nil {
			failed = append(failed, fmt.Errorf("ws=%s: %w", workspace, err))
		}
	}
	return swept, errors.Join(failed...)
}

func (s *MediaSweep) sweepWorkspace(ctx context.Context, workspace string, dryRun bool, swept *Swept) error {
	limit := originsPerCall
	if dryRun {
		limit = originsShown
	}
	for {
		list, err := s.Store.ListUnreferencedOrigins(ctx, workspace, limit)
		if err != nil {
			return err
		}
		before := swept.Count
		for _, origin := range list {
			gone := true
			if !dryRun {
				if gone, err = s.forget(ctx, workspace, origin.BlobRef); err != nil {
					return err
				}
			}
			if gone {
				swept.add(origin.SizeBytes)
			}
		}
		if dryRun || len(list) < limit || swept.Count == before {
			return nil
		}
	}
}

// forget removes one medium: it marks the row, removes the object unless another workspace holds it, and removes the
// row.
func (s *MediaSweep) forget(ctx context.Context, workspace, blobRef string) (gone bool, err error) {
	inTime, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	token, reason, err := s.Store.ForgetMediaOrigin(inTime, workspace, blobRef)
	if err != nil || reason != "" {
		return false, err
	}
	if token != "" {
		if err := s.remove(inTime, blobRef, token); err != nil {
			return false, err
		}
	}
	return true, s.Store.RemoveMediaOrigin(ctx, workspace, blobRef)
}

// remove removes an object under a token. After removalTime another daemon may have removed it, and the content may
// have been registered again.
func (s *MediaSweep) remove(inTime context.Context, blobRef, token string) error {
	if err := inTime.Err(); err != nil {
		return err
	}
	if err := s.Bucket.Remove(inTime, blobRef); err != nil {
		return err
	}
	return s.Store.EndMediaRemoval(inTime, blobRef, token)
}

// removeStray removes an object that no workspace holds.
func (s *MediaSweep) removeStray(ctx context.Context, blobRef string) (gone bool, err error) {
	inTime, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	token, err := s.Store.BeginMediaRemoval(inTime, blobRef)
	if err != nil || token == "" {
		return false, err
	}
	return true, s.remove(inTime, blobRef, token)
}

// SweepStrays removes objects without a row that are older than a day, and finishes the removals of daemons that
// died.
func (s *MediaSweep) SweepStrays(ctx context.Context, dryRun bool) (swept Swept, err error) {
	if !dryRun {
		if err := s.finish(ctx); err != nil {
			return swept, err
		}
	}
	err = s.Bucket.Objects(ctx, time.Now().Add(-strayAge), func(page []media.Object) error {
		size := make(map[string]int64, len(page))
		refs := make([]string, 0, len(page))
		for _, object := range page {
			size[object.BlobRef] = object.SizeBytes
			refs = append(refs, object.BlobRef)
		}
		strays, err := s.Store.ListUnknownMedia(ctx, refs)
		if err != nil {
			return err
		}
		for _, blobRef := range strays {
			gone := true
			if !dryRun {
				if gone, err = s.removeStray(ctx, blobRef); err != nil {
					return err
				}
			}
			if gone {
				swept.add(size[blobRef])
			}
		}
		return nil
	})
	return swept, err
}

func (s *MediaSweep) finish(ctx context.Context) error {
	begun, err := s.Store.ListMediaRemovals(ctx, originsPerCall)
	for _, blobRef := range begun {
		if _, removeErr := s.removeStray(ctx, blobRef); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// SweepTemporary removes the temporary files of writers that died more than a day ago.
func (s *MediaSweep) SweepTemporary(ctx context.Context, dryRun bool) (swept Swept, err error) {
	swept.Count, swept.Bytes, err = s.Bucket.Temporary(ctx, time.Now().Add(-strayAge), dryRun)
	return swept, err
}

// SweepRaw removes raw payloads after their retention time.
func (s *MediaSweep) SweepRaw(ctx context.Context, dryRun bool) (swept Swept, err error) {
	since, err := s.Store.RawKeptSince(ctx)
	if err != nil {
		return swept, err
	}
	swept.Count, swept.Bytes, err = s.Bucket.SweepRaw(ctx, since, dryRun)
	return swept, err
}

func (m *Monitor) sweepMedia(ctx context.Context) error {
	return errors.Join(
		m.runSweep(ctx, "raw_payloads_swept", m.media.SweepRaw),
		m.runSweep(ctx, "media_swept", m.media.SweepUnreferenced))
}

func (m *Monitor) sweepStrays(ctx context.Context) error {
	return errors.Join(
		m.runSweep(ctx, "media_strays_swept", m.media.SweepStrays),
		m.runSweep(ctx, "media_temporary_swept", m.media.SweepTemporary))
}

func (m *Monitor) runSweep(ctx context.Context, name string, sweep func(context.Context, bool) (Swept, error)) error {
	swept, err := sweep(ctx, false)
	m.done(swept.Count > 0, "monitor."+name, "count", swept.Count, "bytes", swept.Bytes)
	return err
}
