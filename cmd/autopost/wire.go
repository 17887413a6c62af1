package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"autopost"
	"autopost/internal/admin/door"
	"autopost/internal/credential"
	"autopost/internal/dispatch"
	"autopost/internal/ingest"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/api"
	"autopost/internal/ingest/pull/query"
	"autopost/internal/ingest/pull/rss"
	"autopost/internal/ingest/pull/web"
	"autopost/internal/ingest/push"
	"autopost/internal/ingest/updates"
	"autopost/internal/media"
	"autopost/internal/monitor"
	"autopost/internal/pg"
	"autopost/internal/pg/foreign"
	"autopost/internal/results"
	"autopost/internal/service"
)

// The stages declare what they need in words of their own, and pg knows no
// stage: each type below introduces the store to one of them.

type dispatchStore struct{ *pg.Store }

func (s dispatchStore) ReadyWork(ctx context.Context, after string, limit int, rooms []dispatch.Room) (dispatch.Work, error) {
	work, err := s.Store.ReadyWork(ctx, after, limit, convert(rooms, func(r dispatch.Room) pg.Room { return pg.Room(r) }))
	return dispatch.Work{Ready: convert(work.Ready, func(p pg.Part) dispatch.Part { return dispatch.Part(p) }), NextIn: work.NextIn}, err
}

func (s dispatchStore) ClaimWithin(ctx context.Context, workspace, runID string, limit int, rooms []dispatch.Room) ([]autopost.Delivery, error) {
	deliveries, err := s.Store.ClaimWithin(ctx, workspace, runID, limit, convert(rooms, func(r dispatch.Room) pg.Room { return pg.Room(r) }))
	return deliveries, refusedCall(err)
}

func (s dispatchStore) ReleaseLost(ctx context.Context, workspace, runID string, known []string) (int, error) {
	n, err := s.Store.ReleaseLost(ctx, workspace, runID, known)
	return n, refusedCall(err)
}

func (s dispatchStore) StartCallBatch(ctx context.Context, workspace string, claims []dispatch.Claim) ([]dispatch.Start, error) {
	a, err := s.Store.StartCallBatch(ctx, workspace, convert(claims, func(c dispatch.Claim) pg.Claim { return pg.Claim(c) }))
	return convert(a, func(x pg.Start) dispatch.Start { return dispatch.Start(x) }), refusedCall(err)
}

func (s dispatchStore) RecordSeriesProgress(ctx context.Context, workspace, deliveryID, claimToken string, ack autopost.Acknowledged) (dispatch.Progress, error) {
	a, err := s.Store.RecordSeriesProgress(ctx, workspace, deliveryID, claimToken, ack)
	return dispatch.Progress(a), err
}

func (s dispatchStore) CommitOutcomeBatch(ctx context.Context, workspace string, settlements []dispatch.Settlement) ([]dispatch.Commit, error) {
	a, err := s.Store.CommitOutcomeBatch(ctx, workspace, convert(settlements, func(x dispatch.Settlement) pg.Settlement { return pg.Settlement(x) }))
	return convert(a, func(x pg.Commit) dispatch.Commit { return dispatch.Commit(x) }), refusedCall(err)
}

// refusedCall tells a stage which errors are of what it asked, not of the database.
func refusedCall(err error) error {
	if pg.Refused(err) {
		return fmt.Errorf("%w: %w", service.ErrRefused, err)
	}
	return err
}

func (s dispatchStore) ClaimActs(ctx context.Context, workspace, runID string, limit int) ([]autopost.Act, error) {
	acts, err := s.Store.ClaimActs(ctx, workspace, runID, limit)
	return acts, refusedCall(err)
}

func (s dispatchStore) StartAct(ctx context.Context, workspace, actID, claimToken string) (dispatch.Start, error) {
	a, err := s.Store.StartAct(ctx, workspace, actID, claimToken)
	return dispatch.Start(a), err
}

func (s dispatchStore) CommitAct(ctx context.Context, workspace, actID, claimToken string, failure *autopost.Error) (dispatch.Commit, error) {
	a, err := s.Store.CommitAct(ctx, workspace, actID, claimToken, failure)
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

// resultQueue is that of the result webhooks.
type resultQueue struct{ *pg.Store }

func (q resultQueue) ClaimWebhooks(ctx context.Context, workspace string, limit int) ([]results.Call, error) {
	list, err := q.Store.ClaimWebhooks(ctx, workspace, limit)
	return convert(list, func(c pg.WebhookCall) results.Call {
		return results.Call{WebhookID: c.WebhookID, EventID: c.EventID, ClaimToken: c.ClaimToken, URL: c.URL, AuthRefs: c.AuthRefs,
			Timeout: time.Duration(c.TimeoutMS) * time.Millisecond, Body: c.Body}
	}), err
}

func (q resultQueue) CommitWebhooks(ctx context.Context, workspace string, told []results.Told) error {
	outcomes := make([]pg.WebhookOutcome, len(told))
	for i, t := range told {
		o := &outcomes[i]
		o.WebhookID, o.EventID, o.ClaimToken = t.Call.WebhookID, t.Call.EventID, t.Call.ClaimToken
		o.Outcome.HTTPStatus, o.Outcome.RetryAfterMS, o.Outcome.Error = t.Outcome.HTTPStatus, t.Outcome.RetryAfter.Milliseconds(), t.Outcome.Error
	}
	return refusedCall(q.CommitWebhookBatch(ctx, workspace, outcomes))
}

type submissionStore struct{ *pg.Store }

func (s submissionStore) ClaimSubmissions(ctx context.Context, workspace, runID string, limit int) ([]ingest.Submission, error) {
	list, err := s.Store.ClaimSubmissions(ctx, workspace, runID, limit)
	return convert(list, func(x pg.Submission) ingest.Submission { return ingest.Submission(x) }), err
}

// mediaRows are the rows beside the media origin.
type mediaRows struct{ *pg.Store }

func (r mediaRows) PutMediaOrigin(ctx context.Context, workspace string, o media.Origin) (media.Registered, error) {
	a, err := r.Store.PutMediaOrigin(ctx, workspace, pg.MediaOrigin{
		BlobRef: o.BlobRef, OriginURL: o.OriginURL, ContentType: o.ContentType, Kind: string(o.Kind),
		SizeBytes: o.SizeBytes, Width: o.Width, Height: o.Height,
	})
	return media.Registered(a), err
}

func (r mediaRows) ListUnreferencedOrigins(ctx context.Context, workspace string, limit int) ([]monitor.Origin, error) {
	list, err := r.Store.ListUnreferencedOrigins(ctx, workspace, limit)
	return convert(list, func(x pg.UnreferencedOrigin) monitor.Origin { return monitor.Origin(x) }), err
}

func mediaSweep(store *pg.Store, bucket *media.Store) *monitor.MediaSweep {
	return &monitor.MediaSweep{Workspaces: store, Origins: mediaRows{store}, Removals: store, Known: store, Bucket: bucket}
}

// botStore is what the keeper of bots needs of the database.
type botStore struct{ *pg.Store }

func (s botStore) ListDueSubscriptions(ctx context.Context, workspace string, limit int) ([]monitor.Bot, error) {
	list, err := s.Store.ListDueSubscriptions(ctx, workspace, limit)
	return convert(list, func(x pg.Bot) monitor.Bot { return monitor.Bot(x) }), err
}

func (s botStore) ListUnaskedChats(ctx context.Context, workspace string, limit int) ([]monitor.Chat, error) {
	list, err := s.Store.ListUnaskedChats(ctx, workspace, limit)
	return convert(list, func(x pg.UnaskedChat) monitor.Chat { return monitor.Chat(x) }), err
}

func (s botStore) RecordChatRights(ctx context.Context, workspace string, chat monitor.Chat, right autopost.Right) (string, error) {
	return s.Store.RecordChatRights(ctx, workspace, pg.UnaskedChat(chat), right)
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
	return pull.ChunkAnswer(a), notTaken(err)
}

func (s pullStore) SetPullCursor(ctx context.Context, workspace, sourceID string, cursor json.RawMessage) error {
	return notTaken(s.Store.SetPullCursor(ctx, workspace, sourceID, cursor))
}

// notTaken tells the loop which errors are of the database, not of what a source has.
func notTaken(err error) error {
	if err == nil || pg.Refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", pull.ErrUnavailable, err)
}

func (s pullStore) FailPoll(ctx context.Context, workspace, sourceID string, f pull.Failure) error {
	return s.Store.FailPoll(ctx, workspace, sourceID, pg.PollFailure{
		Code: f.Code, Message: f.Message, RetryAfterSeconds: int(f.RetryAfter / time.Second), Gone: f.Gone,
	})
}

// sourceCredentials resolve the auth_ref of a source, for the platform that its kind wants.
type sourceCredentials struct{ *credential.Vault }

func (c sourceCredentials) Credential(ctx context.Context, workspace, authRef, platform string) (autopost.Secret, error) {
	return c.Vault.Credential(ctx, workspace, authRef, autopost.Platform(platform))
}

// foreignDatabases are those that sources of kind db read from.
type foreignDatabases struct{}

func (foreignDatabases) Read(ctx context.Context, q query.Question) (query.Answer, error) {
	rows, err := foreign.Read(ctx, foreign.Query(q))
	if refused, ok := errors.AsType[*foreign.Error](err); ok {
		return query.Answer{}, &pull.Failure{Code: "pull_db_" + refused.Code, Message: refused.Message}
	}
	return query.Answer(rows), err
}

// fetchers are the kinds of sources, by pull_sources.kind.
func fetchers(doer web.Doer, vault *credential.Vault) map[string]pull.Fetcher {
	secrets := sourceCredentials{vault}
	return map[string]pull.Fetcher{"rss": rss.New(doer), "api": api.New(doer, secrets), "db": query.New(foreignDatabases{}, secrets)}
}

type pushStore struct{ *pg.Store }

func (s pushStore) ResolveEndpoint(ctx context.Context, kind, secretHash string) (*push.Endpoint, error) {
	endpoint, err := s.Store.ResolveEndpoint(ctx, kind, secretHash)
	return (*push.Endpoint)(endpoint), err
}

// updateStore takes what platforms tell.
type updateStore struct{ pushStore }

func (s updateStore) ResolveBotEndpoint(ctx context.Context, secretHash string) (*updates.Endpoint, error) {
	endpoint, err := s.Store.ResolveBotEndpoint(ctx, secretHash)
	if endpoint == nil || err != nil {
		return nil, err
	}
	return &updates.Endpoint{Endpoint: push.Endpoint(endpoint.Endpoint), Platform: autopost.Platform(endpoint.Platform)}, nil
}

func (s updateStore) ReceiveUpdate(ctx context.Context, workspace, endpoint string, update json.RawMessage) (updates.Taken, error) {
	a, err := s.Store.ReceiveUpdate(ctx, workspace, endpoint, update)
	return updates.Taken(a), err
}

func (s pushStore) GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (push.Verdict, error) {
	verdict, err := s.Store.GuardIngress(ctx, workspace, endpoint, bytes, items)
	return push.Verdict(verdict), err
}

// signedStore also fetches the keys by which signatures are judged.
type signedStore struct {
	*pg.Store

	vault *credential.Vault
	log   *slog.Logger
}

func (s signedStore) GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (push.Verdict, error) {
	return pushStore{s.Store}.GuardIngress(ctx, workspace, endpoint, bytes, items)
}

// ResolveSignedEndpoint goes on with the keys that are at hand, as long as there is one.
func (s signedStore) ResolveSignedEndpoint(ctx context.Context, signedAt time.Time, workspace, endpoint string) (*push.SignedEndpoint, error) {
	e, err := s.Store.ResolveSignedEndpoint(ctx, signedAt, workspace, endpoint)
	if err != nil || e == nil {
		return nil, err
	}
	found := &push.SignedEndpoint{
		Endpoint: push.Endpoint{WorkspaceID: e.WorkspaceID, EndpointID: e.EndpointID, MaxPayloadBytes: e.MaxPayloadBytes},
		Skew:     time.Duration(e.SkewSeconds) * time.Second, Tolerance: time.Duration(e.ToleranceSeconds) * time.Second, Fresh: e.Fresh,
	}
	for _, ref := range e.AuthRefs {
		key, err := s.vault.Open(ctx, workspace, ref)
		if err != nil {
			s.log.Error("push.key_not_at_hand", "workspace_id", workspace, "endpoint_id", endpoint, "auth_ref", ref, "error", err)
			continue
		}
		found.Keys = append(found.Keys, key)
	}
	if len(found.Keys) == 0 {
		return nil, fmt.Errorf("endpoint ws=%s endpoint=%s has no signing key at hand: bind its signing_ref to a credential of platform webhook", workspace, endpoint)
	}
	return found, nil
}

type adminStore struct{ *pg.Store }

func (s adminStore) ResolveAPIKey(ctx context.Context, keyHash string) (*door.Key, error) {
	key, err := s.Store.ResolveAPIKey(ctx, keyHash)
	return (*door.Key)(key), err
}

func (s adminStore) List(ctx context.Context, function, workspace, kind string, filter map[string]any, limit int) ([]json.RawMessage, error) {
	rows, err := s.Store.List(ctx, function, workspace, kind, filter, limit)
	return rows, defect(err)
}

func (s adminStore) Look(ctx context.Context, function, workspace string, args map[string]any) (json.RawMessage, error) {
	answer, err := s.Store.Look(ctx, function, workspace, args)
	return answer, defect(err)
}

func (s adminStore) Write(ctx context.Context, w door.Write) (door.Written, error) {
	written, err := s.Store.Write(ctx, pg.Write(w))
	return door.Written(written), defect(err)
}

// defect marks what no repeat can cure.
func defect(err error) error {
	for _, known := range []error{pg.ErrUnexpected, pg.ErrNotAllowed, pg.ErrNoWorkspace, pg.ErrTransition, pg.ErrIsolation} {
		if errors.Is(err, known) {
			return errors.Join(door.ErrDefect, err)
		}
	}
	return err
}

func convert[From, To any](list []From, one func(From) To) []To {
	out := make([]To, 0, len(list))
	for _, x := range list {
		out = append(out, one(x))
	}
	return out
}
