package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"autopost/internal/media"
)

// Origin is content of the media origin that a workspace needs no more.
type Origin struct {
	BlobRef   string
	OriginURL string
	SizeBytes int64
	// Forgotten says that it was forgotten before, and its row not removed yet.
	Forgotten bool
}

// Origins tells which media a workspace needs no more, and lets go of them.
type Origins interface {
	ListUnreferencedOrigins(ctx context.Context, workspace string, limit int) ([]Origin, error)
	// ForgetMediaOrigin says by a token that the object must go, EndMediaRemoval then,
	// and by a reason that the row is still needed, or that another daemon is at it.
	ForgetMediaOrigin(ctx context.Context, workspace, blobRef string) (token, reason string, err error)
	RemoveMediaOrigin(ctx context.Context, workspace, blobRef string) error
}

// Removals bar content from being registered while its object is taken away.
type Removals interface {
	// BeginMediaRemoval gives no token where a workspace holds the content, or another
	// daemon is at it.
	BeginMediaRemoval(ctx context.Context, blobRef string) (token string, err error)
	EndMediaRemoval(ctx context.Context, blobRef, token string) error
	// ListMediaRemovals names those that were begun by somebody who is taken for dead.
	ListMediaRemovals(ctx context.Context, limit int) ([]string, error)
}

// KnownMedia tells content that nobody has a row of.
type KnownMedia interface {
	ListUnknownMedia(ctx context.Context, blobRefs []string) ([]string, error)
}

// Bucket is the media origin itself; *media.Store is one.
type Bucket interface {
	Objects(ctx context.Context, then time.Time, visit func([]media.Object) error) error
	Remove(ctx context.Context, blobRef string) error
	Temporary(ctx context.Context, then time.Time, dryRun bool) (count int, size int64, err error)
}

// MediaSweep removes from the media origin what nobody needs: content that nothing
// refers to and whose time is over, objects without a row, and what dead writers left.
// Killed anywhere, it leaves nothing that the next sweep does not see, and never a row
// without its object.
type MediaSweep struct {
	Workspaces Retention
	Origins    Origins
	Removals   Removals
	Known      KnownMedia
	Bucket     Bucket
}

const (
	// originsPerCall is how many rows are asked for at once; originsShown, how many a dry run looks at.
	originsPerCall = 100
	originsShown   = 10_000
	// strayAge is how old an object without a row, or a temporary one, must be: whoever
	// wrote it a day ago is not about to register it.
	strayAge = 24 * time.Hour
	// removalTime bounds the time between the permission to take an object away and
	// doing so. The setting media_removal_seconds must be far longer.
	removalTime = time.Minute
)

// Swept counts what a sweep took away, or would.
type Swept struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (s *Swept) add(bytes int64) {
	s.Count++
	s.Bytes += bytes
}

// SweepUnreferenced removes what workspaces need no more. A failure for one workspace
// holds up no other.
func (s *MediaSweep) SweepUnreferenced(ctx context.Context, dryRun bool) (swept Swept, err error) {
	workspaces, err := named(ctx, s.Workspaces.ListAllWorkspaces)
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
		list, err := s.Origins.ListUnreferencedOrigins(ctx, workspace, limit)
		if err != nil {
			return err
		}
		before := swept.Count
		for _, origin := range list {
			gone := true
			if !dryRun {
				if gone, err = s.let(ctx, workspace, origin.BlobRef); err != nil {
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

// let lets go of one medium: the row is marked, then its object goes, if no other
// workspace holds it, then the row.
func (s *MediaSweep) let(ctx context.Context, workspace, blobRef string) (gone bool, err error) {
	inTime, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	token, reason, err := s.Origins.ForgetMediaOrigin(inTime, workspace, blobRef)
	if err != nil || reason != "" {
		return false, err
	}
	if token != "" {
		if err := s.remove(inTime, blobRef, token); err != nil {
			return false, err
		}
	}
	return true, s.Origins.RemoveMediaOrigin(ctx, workspace, blobRef)
}

// remove takes an object away under a token. After its time another daemon may have
// done so, and the content may be back.
func (s *MediaSweep) remove(inTime context.Context, blobRef, token string) error {
	if err := inTime.Err(); err != nil {
		return err
	}
	if err := s.Bucket.Remove(inTime, blobRef); err != nil {
		return err
	}
	return s.Removals.EndMediaRemoval(inTime, blobRef, token)
}

// take removes the object of content that no workspace holds.
func (s *MediaSweep) take(ctx context.Context, blobRef string) (gone bool, err error) {
	inTime, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	token, err := s.Removals.BeginMediaRemoval(inTime, blobRef)
	if err != nil || token == "" {
		return false, err
	}
	return true, s.remove(inTime, blobRef, token)
}

// SweepStrays removes objects that no workspace has a row of and that are older than a
// day, and finishes the removals of those who died over them.
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
		strays, err := s.Known.ListUnknownMedia(ctx, refs)
		if err != nil {
			return err
		}
		for _, blobRef := range strays {
			gone := true
			if !dryRun {
				if gone, err = s.take(ctx, blobRef); err != nil {
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
	begun, err := s.Removals.ListMediaRemovals(ctx, originsPerCall)
	for _, blobRef := range begun {
		if _, takeErr := s.take(ctx, blobRef); takeErr != nil {
			err = errors.Join(err, takeErr)
		}
	}
	return err
}

// SweepTemporary removes what writers that died more than a day ago left behind.
func (s *MediaSweep) SweepTemporary(ctx context.Context, dryRun bool) (swept Swept, err error) {
	swept.Count, swept.Bytes, err = s.Bucket.Temporary(ctx, time.Now().Add(-strayAge), dryRun)
	return swept, err
}

// sweepMedia lets go of what workspaces need no more.
func (m *Monitor) sweepMedia(ctx context.Context) bool {
	return m.report(ctx, "media_swept", m.deps.Media.SweepUnreferenced)
}

// sweepStrays looks through the whole media origin for what nobody has a row of.
func (m *Monitor) sweepStrays(ctx context.Context) bool {
	strays := m.report(ctx, "media_strays_swept", m.deps.Media.SweepStrays)
	return m.report(ctx, "media_temporary_swept", m.deps.Media.SweepTemporary) && strays
}

func (m *Monitor) report(ctx context.Context, name string, sweep func(context.Context, bool) (Swept, error)) bool {
	swept, err := sweep(ctx, false)
	m.done(swept.Count > 0, "monitor."+name, "count", swept.Count, "bytes", swept.Bytes)
	if err != nil {
		m.fail(ctx, name, err)
	}
	return err == nil
}
