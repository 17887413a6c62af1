package rawpayload_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/credential"
	"autopost/internal/media"
	"autopost/internal/pg"
	"autopost/internal/rawpayload"
	"autopost/internal/secret"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

const canary = "hunter2hunter2hunter2"

type fixture struct {
	*pgtest.DB

	t       *testing.T
	store   *pg.Store
	bucket  *media.Store
	keyFile string
	logs    bytes.Buffer
}

func open(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{DB: pgtest.New(t), t: t, keyFile: filepath.Join(t.TempDir(), "master.key")}
	posttest.Workspace(f.DB, "w")
	posttest.Workspace(f.DB, "v")
	var err error
	f.store, err = pg.Open(t.Context(), pg.Options{URL: f.URL("engine")})
	require.NoError(t, err)
	t.Cleanup(f.store.Close)
	f.bucket, err = media.OpenStore(t.Context(), "mem://")
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.bucket.Close() })
	return f
}

func (f *fixture) keeper(bucket rawpayload.Bucket) *rawpayload.Keeper {
	ring := secret.NewKeyring(f.keyFile)
	return rawpayload.New(rawpayload.Config{
		Store: f.store, Bucket: bucket, Ring: ring, Log: slog.New(slog.NewTextHandler(&f.logs, nil)),
		Keys: credential.New(credential.Config{Store: f.store, Ring: ring, MayMakeKey: true}),
	})
}

func ref() string { return "raw/20260601/" + uuid.NewString() }

func show(payload string) func() json.RawMessage {
	return func() json.RawMessage { return json.RawMessage(payload) }
}

func TestPayloadIsMaskedSealedAndBoundToItsWorkspace(t *testing.T) {
	t.Parallel()
	f := open(t)
	k := f.keeper(f.bucket)
	name, other := ref(), ref()
	k.Keep("w", name, show(`{"status": 400, "body": {"access_token": "`+canary+`", "text": "call +7 911 123-45-67, mail ann@example.org, ok"}}`))
	k.Keep("w", other, show(`{"status": 500}`))
	k.Wait(t.Context())

	got, err := k.Read(t.Context(), "w", name)
	require.NoError(t, err, f.logs.String())
	require.JSONEq(t, `{"status": 400, "body": {"access_token": "[redacted]", "text": "call [redacted], mail [redacted], ok"}}`, string(got))
	object, err := f.bucket.ReadRaw(t.Context(), name)
	require.NoError(t, err)
	for _, planted := range []string{canary, "911", "example.org", "status"} {
		require.NotContains(t, string(object), planted)
	}
	require.Equal(t, 1, pgtest.Value[int](f.DB, `select count(*)::int from autopost.data_keys`), "both have one key")

	_, err = k.Read(t.Context(), "v", name)
	require.ErrorContains(t, err, "no data key", "another workspace has no key")
	k.Keep("v", ref(), show(`{}`))
	k.Wait(t.Context())
	_, err = k.Read(t.Context(), "v", name)
	require.ErrorContains(t, err, "another workspace")
	moved := ref()
	require.NoError(t, f.bucket.WriteRaw(t.Context(), moved, object))
	_, err = k.Read(t.Context(), "w", moved)
	require.ErrorContains(t, err, "it was changed")
	_, err = k.Read(t.Context(), "w", ref())
	require.ErrorIs(t, err, autopost.ErrNoOrigin, "the event was committed, the object is missing")
}

func TestPayloadHasAtMost64KB(t *testing.T) {
	t.Parallel()
	f := open(t)
	k := f.keeper(f.bucket)
	name := ref()
	k.Keep("w", name, show(fmt.Sprintf("{%q: %q}", "body", strings.Repeat("token=abcd ", 6000))))
	k.Wait(t.Context())
	object, err := f.bucket.ReadRaw(t.Context(), name)
	require.NoError(t, err, f.logs.String())
	require.LessOrEqual(t, len(object), 64<<10)
	got, err := k.Read(t.Context(), "w", name)
	require.NoError(t, err)
	require.True(t, json.Valid(got))
}

func TestMasterKeyRotatesOrIsLost(t *testing.T) {
	t.Parallel()
	f := open(t)
	k := f.keeper(f.bucket)
	first, second := ref(), ref()
	k.Keep("w", first, show(`{"n": 1}`))
	k.Wait(t.Context())

	ring := secret.NewKeyring(f.keyFile)
	require.NoError(t, ring.Renew())
	ids, err := ring.IDs()
	require.NoError(t, err)
	keys, err := f.store.ListDataKeys(t.Context(), "w", ids[0])
	require.NoError(t, err)
	require.Len(t, keys, 1)
	fresh, err := rawpayload.Rewrap(ring, "w", keys[0])
	require.NoError(t, err)
	applied, err := f.store.RewrapDataKey(t.Context(), "w", keys[0].KeyID, fresh)
	require.NoError(t, err)
	require.True(t, applied)
	dropped, err := ring.Drop()
	require.NoError(t, err)
	require.Equal(t, 1, dropped)
	got, err := k.Read(t.Context(), "w", first)
	require.NoError(t, err)
	require.JSONEq(t, `{"n": 1}`, string(got))

	f.keyFile = filepath.Join(t.TempDir(), "another.key")
	require.NoError(t, secret.NewKeyring(f.keyFile).Renew())
	k = f.keeper(f.bucket)
	k.Keep("w", second, show(`{"n": 2}`))
	k.Wait(t.Context())
	got, err = k.Read(t.Context(), "w", second)
	require.NoError(t, err, f.logs.String())
	require.JSONEq(t, `{"n": 2}`, string(got))
	require.Contains(t, f.logs.String(), "raw.key_lost")
	_, err = k.Read(t.Context(), "w", first)
	require.ErrorContains(t, err, "does not hold")
}

// stuck is a media store that does not answer until it is released.
type stuck struct {
	released chan struct{}
	fails    error
	mu       sync.Mutex
	writes   int
}

func (b *stuck) WriteRaw(ctx context.Context, _ string, _ []byte) error {
	select {
	case <-b.released:
	case <-ctx.Done():
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	return b.fails
}

func (*stuck) ReadRaw(context.Context, string) ([]byte, error) { return nil, autopost.ErrNoOrigin }

func TestStuckStorageDelaysNobody(t *testing.T) {
	t.Parallel()
	f := open(t)
	bucket := &stuck{released: make(chan struct{}), fails: errors.New("the bucket is gone")}
	k := f.keeper(bucket)
	for range 300 { // more than may wait
		k.Keep("w", ref(), show(`{}`))
	}
	close(bucket.released)
	k.Wait(t.Context())
	require.Equal(t, 256, bucket.writes, f.logs.String())
	require.Equal(t, 300, strings.Count(f.logs.String(), "raw.not_stored"))
	require.Equal(t, 44, strings.Count(f.logs.String(), "too many raw payloads"))
}

func TestRejectedPostsAreKeptUnderTheNameOfTheirEvents(t *testing.T) {
	t.Parallel()
	f := open(t)
	k := f.keeper(f.bucket)
	run := uuid.NewString()
	f.Exec(`select autopost.emit_note('w', 'ingress_payload_rejected', 'error', null, null, null, jsonb_build_object('run_id', $1::text))`, run)
	k.KeepRejected("w", run, []json.RawMessage{json.RawMessage(`{"text": 1}`)})
	k.Wait(t.Context())
	require.Zero(t, pgtest.Value[int](f.DB, `select count(*)::int from autopost.events where payload_ref is not null`), "off")

	f.Exec(`update autopost.settings set value = '7' where key = 'raw_retention_days'`)
	k = f.keeper(f.bucket)
	k.KeepRejected("w", run, []json.RawMessage{json.RawMessage(`{"text": 1, "secret": "` + canary + `", "mail": "ann\u0040example.org"}`)})
	k.Wait(t.Context())
	name := pgtest.Value[string](f.DB, `select payload_ref from autopost.events where action = 'ingress_payload_rejected'`)
	got, err := k.Read(t.Context(), "w", name)
	require.NoError(t, err, f.logs.String())
	require.JSONEq(t, `{"posts": [{"text": 1, "secret": "[redacted]", "mail": "[redacted]"}]}`, string(got))
}
