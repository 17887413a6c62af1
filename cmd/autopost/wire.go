package main

import (
	"context"
	"encoding/json"
	"time"

	"autopost"
	"autopost/internal/admin"
	"autopost/internal/dispatch"
	"autopost/internal/ingest"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/push"
	"autopost/internal/media"
	"autopost/internal/pg"
)

// The stages declare what they need in words of their own, and pg knows no
// stage: each type below introduces the store to one of them.

type dispatchStore struct{ *pg.Store }

func (s dispatchStore) StartCall(ctx context.Context, workspace, deliveryID, claimToken string) (dispatch.Start, error) {
	a, err := s.Store.StartCall(ctx, workspace, deliveryID, claimToken)
	return dispatch.Start(a), err
}

func (s dispatchStore) RecordSeriesProgress(ctx context.Context, workspace, deliveryID, claimToken string, ack autopost.Acknowledged) (dispatch.Progress, error) {
	a, err := s.Store.RecordSeriesProgress(ctx, workspace, deliveryID, claimToken, ack)
	return dispatch.Progress(a), err
}

func (s dispatchStore) CommitOutcome(ctx context.Context, workspace, deliveryID, claimToken string, outcome autopost.Outcome) (dispatch.Commit, error) {
	a, err := s.Store.CommitOutcome(ctx, workspace, deliveryID, claimToken, outcome)
	return dispatch.Commit(a), err
}

type mediaBlobs struct{ *pg.Store }

func (b mediaBlobs) GetMediaBlob(ctx context.Context, key media.BlobKey) (*media.Blob, error) {
	fileID, expiresAt, err := b.Store.GetMediaBlob(ctx, pg.BlobKey(key))
	if err != nil || fileID == "" {
		return nil, err
	}
	return &media.Blob{FileID: fileID, ExpiresAt: expiresAt}, nil
}

func (b mediaBlobs) PutMediaBlob(ctx context.Context, key media.BlobKey, blob media.Blob) error {
	return b.Store.PutMediaBlob(ctx, pg.BlobKey(key), blob.FileID, blob.ExpiresAt)
}

func (b mediaBlobs) ForgetMediaBlob(ctx context.Context, key media.BlobKey) error {
	return b.Store.PutMediaBlob(ctx, pg.BlobKey(key), "", time.Time{})
}

type submissionStore struct{ *pg.Store }

func (s submissionStore) ClaimSubmissions(ctx context.Context, workspace, runID string, limit int) ([]ingest.Submission, error) {
	list, err := s.Store.ClaimSubmissions(ctx, workspace, runID, limit)
	return convert(list, func(x pg.Submission) ingest.Submission { return ingest.Submission(x) }), err
}

func (s submissionStore) PutMediaOrigin(ctx context.Context, workspace string, o media.Origin) error {
	return s.Store.PutMediaOrigin(ctx, workspace, pg.MediaOrigin{
		BlobRef: o.BlobRef, OriginURL: o.OriginURL, ContentType: o.ContentType, Kind: string(o.Kind),
		SizeBytes: o.SizeBytes, Width: o.Width, Height: o.Height,
	})
}

type fanoutStore struct{ *pg.Store }

func (s fanoutStore) RunFanout(ctx context.Context, workspace string, limit int) (ingest.Fanout, error) {
	went, err := s.Store.RunFanout(ctx, workspace, limit)
	return ingest.Fanout(went), err
}

type pullStore struct{ *pg.Store }

func (s pullStore) ListDueSources(ctx context.Context, workspace string, limit int) ([]pull.Source, error) {
	list, err := s.Store.ListDueSources(ctx, workspace, limit)
	return convert(list, func(x pg.Source) pull.Source { return pull.Source(x) }), err
}

func (s pullStore) IngestPullChunk(ctx context.Context, workspace, sourceID, endpointID string, items json.RawMessage) (pull.ChunkAnswer, error) {
	a, err := s.Store.IngestPullChunk(ctx, workspace, sourceID, endpointID, items)
	return pull.ChunkAnswer(a), err
}

type pushStore struct{ *pg.Store }

func (s pushStore) ResolveEndpoint(ctx context.Context, kind, secretHash string) (*push.Endpoint, error) {
	endpoint, err := s.Store.ResolveEndpoint(ctx, kind, secretHash)
	return (*push.Endpoint)(endpoint), err
}

func (s pushStore) GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (push.Verdict, error) {
	verdict, err := s.Store.GuardIngress(ctx, workspace, endpoint, bytes, items)
	return push.Verdict(verdict), err
}

type adminStore struct{ *pg.Store }

func (s adminStore) ResolveAPIKey(ctx context.Context, keyHash string) (*admin.Key, error) {
	key, err := s.Store.ResolveAPIKey(ctx, keyHash)
	return (*admin.Key)(key), err
}

func convert[From, To any](list []From, one func(From) To) []To {
	out := make([]To, 0, len(list))
	for _, x := range list {
		out = append(out, one(x))
	}
	return out
}
