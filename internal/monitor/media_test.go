package monitor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/media"
	"autopost/internal/monitor"
)

func (s *store) ListUnreferencedOrigins(ctx context.Context, workspace string, _ int) ([]monitor.Origin, error) {
	_, err := s.ask(ctx, "unreferenced "+workspace)
	return []monitor.Origin{{BlobRef: "mine-" + workspace, SizeBytes: 7}, {BlobRef: "needed-" + workspace, SizeBytes: 7}, {BlobRef: "shared-" + workspace, SizeBytes: 7}}, err
}

func (s *store) ForgetMediaOrigin(ctx context.Context, workspace, blobRef string) (token, reason string, err error) {
	_, err = s.ask(ctx, "forget "+blobRef)
	return map[string]string{"mine-" + workspace: "token"}[blobRef], map[string]string{"needed-" + workspace: "referenced"}[blobRef], err
}

func (s *store) RemoveMediaOrigin(ctx context.Context, _, blobRef string) error {
	_, err := s.ask(ctx, "row "+blobRef)
	return err
}

func (s *store) BeginMediaRemoval(ctx context.Context, blobRef string) (token string, err error) {
	_, err = s.ask(ctx, "begin "+blobRef)
	return map[string]string{"stray": "token", "abandoned": "token"}[blobRef], err
}

func (s *store) EndMediaRemoval(ctx context.Context, blobRef, token string) error {
	_, err := s.ask(ctx, "end "+blobRef+" "+token)
	return err
}

func (s *store) ListMediaRemovals(ctx context.Context, _ int) ([]string, error) {
	_, err := s.ask(ctx, "removals")
	return []string{"abandoned"}, err
}

func (s *store) ListUnknownMedia(ctx context.Context, _ []string) ([]string, error) {
	_, err := s.ask(ctx, "unknown")
	return []string{"stray", "just taken"}, err
}

func (s *store) Objects(ctx context.Context, then time.Time, visit func([]media.Object) error) error {
	if _, err := s.ask(ctx, "objects older than "+time.Since(then).Round(time.Minute).String()); err != nil {
		return err
	}
	return visit([]media.Object{{BlobRef: "known", SizeBytes: 1}, {BlobRef: "stray", SizeBytes: 20}, {BlobRef: "just taken", SizeBytes: 300}})
}

func (s *store) Remove(ctx context.Context, blobRef string) error {
	_, err := s.ask(ctx, "object "+blobRef)
	return err
}

func (s *store) RawKeptSince(context.Context) (string, error) { return "20260101", nil }

func (s *store) SweepRaw(ctx context.Context, since string, _ bool) (int, int64, error) {
	_, err := s.ask(ctx, "raw payloads before "+since)
	return 0, 0, err
}

func (s *store) Temporary(ctx context.Context, then time.Time, _ bool) (count int, size int64, err error) {
	count, err = s.ask(ctx, "temporary older than "+time.Since(then).Round(time.Minute).String())
	return count, int64(count), err
}

func (s *store) did(t *testing.T, what ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var seen []string
	for _, step := range s.order {
		for _, w := range what {
			if step == w {
				seen = append(seen, step)
			}
		}
	}
	require.Equal(t, what, seen)
}

func TestARowNeverLacksItsObject(t *testing.T) {
	s := newStore()
	watch(t, s, 4*time.Minute+time.Second)
	s.did(t, "forget mine-acme", "object mine-acme", "end mine-acme token", "row mine-acme", "forget needed-acme", "forget shared-acme", "row shared-acme", "forget mine-paused")
	require.Zero(t, s.count("row needed-acme"))
	require.Zero(t, s.count("object shared-acme"), "another workspace holds it")
	s.did(t, "removals", "begin abandoned", "object abandoned", "end abandoned token", "objects older than 24h0m0s", "unknown", "begin stray", "object stray", "end stray token", "begin just taken", "temporary older than 24h0m0s")
	require.Zero(t, s.count("object just taken"))
	require.Contains(t, s.logged(), `"msg":"monitor.media_swept","count":6,"bytes":42`)
	require.Contains(t, s.logged(), `"msg":"monitor.media_strays_swept","count":1,"bytes":20`)
}

func TestAFailedRemovalOfMediaStopsNothingElse(t *testing.T) {
	s := newStore()
	s.fails["object mine-acme"] = true
	s.fails["objects older than 24h0m0s"] = true
	watch(t, s, 4*time.Minute+time.Second)
	require.Zero(t, s.count("row mine-acme"), "the next sweep finds its row")
	require.Zero(t, s.count("end mine-acme token"))
	require.Equal(t, 2, s.count("row mine-zeta"), "the failed duty ran again")
	require.Equal(t, 1, s.count("temporary older than 24h0m0s"))
	require.Contains(t, s.logged(), "ws=acme: connection refused")
}

func TestADryRunChangesNothing(t *testing.T) {
	s := newStore()
	sweep := monitor.MediaSweep{Store: s, Bucket: s}
	swept, err := sweep.SweepUnreferenced(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, monitor.Swept{Count: 9, Bytes: 63}, swept)
	swept, err = sweep.SweepStrays(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, monitor.Swept{Count: 2, Bytes: 320}, swept)
	for _, step := range s.order {
		require.NotRegexp(t, `^(forget|row|begin|end|object) `, step)
	}
}
