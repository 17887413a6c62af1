package daemon

import (
	"bytes"
	"context"
	"encoding/json"

	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/push"
	"autopost/internal/pg"
	"autopost/internal/rawpayload"
)

const statusRejected = "rejected"

// rejectedPushes keeps the rejected posts of pushes as raw payloads.
type rejectedPushes struct {
	push.Store

	raw *rawpayload.Keeper
}

// ReceivePush implements push.Store.
func (s rejectedPushes) ReceivePush(ctx context.Context, workspace, endpoint string, items json.RawMessage) (json.RawMessage, error) {
	answer, err := s.Store.ReceivePush(ctx, workspace, endpoint, items)
	if err == nil {
		s.keep(workspace, items, answer)
	}
	return answer, err
}

// ReceiveSignedPush implements push.Store.
func (s rejectedPushes) ReceiveSignedPush(ctx context.Context, workspace, endpoint, webhookID string, items json.RawMessage) (json.RawMessage, error) {
	answer, err := s.Store.ReceiveSignedPush(ctx, workspace, endpoint, webhookID, items)
	if err == nil {
		s.keep(workspace, items, answer)
	}
	return answer, err
}

func (s rejectedPushes) keep(workspace string, items, answer json.RawMessage) {
	if !bytes.Contains(answer, []byte(`"`+statusRejected+`"`)) {
		return // usual, and cheaper than to decode the posts
	}
	var taken struct {
		RunID   string `json:"run_id"`
		Results []struct {
			Status string `json:"status"`
		} `json:"results"`
	}
	var posts, rejected []json.RawMessage
	if json.Unmarshal(answer, &taken) != nil || json.Unmarshal(items, &posts) != nil {
		return // the handler refuses such an answer
	}
	for i, result := range taken.Results {
		if result.Status == statusRejected && i < len(posts) {
			rejected = append(rejected, posts[i])
		}
	}
	if len(rejected) > 0 && taken.RunID != "" {
		s.raw.KeepRejected(workspace, taken.RunID, rejected)
	}
}

// rejectedItems keeps the rejected items of sources as raw payloads.
type rejectedItems struct {
	*pg.Store

	raw *rawpayload.Keeper
}

// IngestPullChunk implements pull.Store.
func (s rejectedItems) IngestPullChunk(ctx context.Context, workspace, sourceID, endpointID string, items json.RawMessage) (pull.ChunkAnswer, error) {
	answer, err := s.Store.IngestPullChunk(ctx, workspace, sourceID, endpointID, items)
	if err != nil || answer.Rejected == 0 {
		return answer, err
	}
	if rejected := rejectedBodies(items, answer.Results); len(rejected) > 0 {
		s.raw.KeepRejected(workspace, answer.RunID, rejected)
	}
	return answer, nil
}

// rejectedBodies returns the items of a chunk that were rejected.
func rejectedBodies(chunk json.RawMessage, results []pull.ItemResult) (rejected []json.RawMessage) {
	refs := map[string]bool{}
	for _, result := range results {
		if result.Status == statusRejected && result.SourceRef != "" {
			refs[result.SourceRef] = true
		}
	}
	var items []json.RawMessage
	if json.Unmarshal(chunk, &items) != nil {
		return nil
	}
	for _, item := range items {
		var named struct {
			SourceRef string `json:"source_ref"`
		}
		if json.Unmarshal(item, &named) == nil && refs[named.SourceRef] {
			rejected = append(rejected, item)
			delete(refs, named.SourceRef)
		}
	}
	return rejected
}
