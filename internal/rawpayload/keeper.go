// Package rawpayload keeps raw payloads: whole answers of platforms to failed calls, and bodies of rejected posts. It
// masks them, seals them with the data key of their workspace, and stores them in the media store under raw/.
//
// The database names a payload in the event, then Keep stores the object. If the process dies between both, the event
// names an object that does not exist, and Read says so. An object lives until its day is over, also without an event.
package rawpayload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"autopost/internal/secret"
)

const (
	// maxPayload is the largest payload, in bytes.
	maxPayload = 64_000
	// maxPending bounds the payloads that wait for the storage; further ones are dropped. maxRunning of them are written
	// at once.
	maxPending = 256
	maxRunning = 8
	// storeTime bounds the wait and the write of one payload.
	storeTime = 30 * time.Second
	// offTime is how long rejected posts are ignored after the database said that raw payloads are off.
	offTime = 30 * time.Second
	// keyName is the binding of data keys.
	keyName = "raw payloads"
	// header is the first line of an object, with the version of the data key.
	header = "autopost raw 1 key %d\n"
)

// Key is a row of autopost.data_keys. In JSON the bytes are base64.
type Key struct {
	Version    int    `json:"version"`
	KeyID      string `json:"key_id"`
	WrappedKey []byte `json:"wrapped_key"`
}

// Store is what this package needs from the database. *pg.Store implements it.
type Store interface {
	// BeginRaw masks a payload and returns the newest data key; nil before the first.
	BeginRaw(ctx context.Context, workspace string, payload json.RawMessage) (json.RawMessage, *Key, error)
	// NameRejected names the payload of the posts that a run rejected. kept is false while raw payloads are off; ref is ""
	// if the run has no such event.
	NameRejected(ctx context.Context, workspace, run string) (kept bool, ref string, err error)
	// GetDataKey returns a data key; nil if it does not exist.
	GetDataKey(ctx context.Context, workspace string, version int) (*Key, error)
	// AddDataKey returns false if the version exists.
	AddDataKey(ctx context.Context, workspace string, key Key) (bool, error)
}

// Bucket is the media store. *media.Store implements it.
type Bucket interface {
	WriteRaw(ctx context.Context, ref string, sealed []byte) error
	// ReadRaw returns autopost.ErrNoOrigin if the object does not exist.
	ReadRaw(ctx context.Context, ref string) ([]byte, error)
}

// Keys creates the master key file if needed. *credential.Vault implements it.
type Keys interface {
	EnsureKey(ctx context.Context) error
}

// Config configures a Keeper. All fields are required.
type Config struct {
	Store  Store
	Bucket Bucket
	Keys   Keys
	Ring   *secret.Keyring
	Log    *slog.Logger
}

// Keeper stores and reads raw payloads. It is safe for concurrent use.
type Keeper struct {
	cfg              Config
	pending, running chan struct{}
	open             sync.WaitGroup
	// offUntil is when the database is asked again whether rejected posts are kept, in nanoseconds.
	offUntil atomic.Int64
}

// New returns a Keeper. It has no effects.
func New(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, pending: make(chan struct{}, maxPending), running: make(chan struct{}, maxRunning)}
}

// Keep stores what show returns under ref, in the background. It never waits: a payload above the number of pending
// ones, or one whose storage fails, is dropped with a log line.
func (k *Keeper) Keep(workspace, ref string, show func() json.RawMessage) {
	k.start(workspace, ref, func(ctx context.Context) error { return k.store(ctx, workspace, ref, show()) })
}

// KeepRejected stores the posts that a run rejected, in the background, like Keep.
func (k *Keeper) KeepRejected(workspace, run string, posts []json.RawMessage) {
	if time.Now().UnixNano() < k.offUntil.Load() {
		return
	}
	k.start(workspace, "run "+run, func(ctx context.Context) error {
		kept, ref, err := k.cfg.Store.NameRejected(ctx, workspace, run)
		if err != nil {
			return err
		}
		if !kept {
			k.offUntil.Store(time.Now().Add(offTime).UnixNano())
		}
		if ref == "" {
			return nil
		}
		payload, err := plain(map[string]any{"posts": posts})
		if err != nil {
			return err
		}
		return k.store(ctx, workspace, ref, bounded(payload))
	})
}

// plain encodes a value so that no escape hides a text from the masks.
func plain(value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(decoded)
	return bytes.TrimSpace(out.Bytes()), err
}

// start runs work in the background. what names the payload in the log.
func (k *Keeper) start(workspace, what string, work func(context.Context) error) {
	select {
	case k.pending <- struct{}{}:
	default:
		k.dropped(workspace, what, errors.New("too many raw payloads wait for the media store"))
		return
	}
	k.open.Go(func() {
		defer func() { <-k.pending }()
		ctx, cancel := context.WithTimeout(context.Background(), storeTime)
		defer cancel()
		select {
		case k.running <- struct{}{}:
		case <-ctx.Done():
			k.dropped(workspace, what, ctx.Err())
			return
		}
		defer func() { <-k.running }()
		if err := work(ctx); err != nil {
			k.dropped(workspace, what, err)
		}
	})
}

func (k *Keeper) dropped(workspace, what string, err error) {
	k.cfg.Log.Warn("raw.not_stored", "workspace_id", workspace, "payload_ref", what, "error", err)
}

// Wait waits until no payload is pending, or ctx ends.
func (k *Keeper) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		k.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (k *Keeper) store(ctx context.Context, workspace, ref string, payload json.RawMessage) error {
	masked, stored, err := k.cfg.Store.BeginRaw(ctx, workspace, payload)
	if err != nil {
		return err
	}
	key, version, err := k.sealingKey(ctx, workspace, stored)
	if err != nil {
		return err
	}
	sealed, err := key.Seal(ref, bounded(masked))
	if err != nil {
		return err
	}
	return k.cfg.Bucket.WriteRaw(ctx, ref, append(fmt.Appendf(nil, header, version), sealed...))
}

// bounded cuts a payload that grew by its masks. The rest is a JSON string.
func bounded(payload json.RawMessage) json.RawMessage {
	if len(payload) <= maxPayload {
		return payload
	}
	for length := maxPayload; ; length = length * 3 / 4 {
		text, err := json.Marshal(string(bytes.ToValidUTF8(payload[:length], nil)))
		if err == nil && len(text) <= maxPayload {
			return text
		}
	}
}

// sealingKey opens the newest data key. It makes one if there is none, or if the master key of the newest is lost.
func (k *Keeper) sealingKey(ctx context.Context, workspace string, stored *Key) (secret.DataKey, int, error) {
	version := 1
	if stored != nil {
		key, err := k.dataKey(workspace, *stored)
		if err == nil {
			return key, stored.Version, nil
		}
		k.cfg.Log.Warn("raw.key_lost", "workspace_id", workspace, "version", stored.Version, "error", err)
		version = stored.Version + 1
	}
	if err := k.cfg.Keys.EnsureKey(ctx); err != nil {
		return secret.DataKey{}, 0, err
	}
	key, sealed, err := k.cfg.Ring.NewDataKey(binding(workspace, version))
	if err != nil {
		return secret.DataKey{}, 0, err
	}
	added, err := k.cfg.Store.AddDataKey(ctx, workspace, Key{Version: version, KeyID: sealed.KeyID, WrappedKey: sealed.WrappedKey})
	if err != nil || added {
		return key, version, err
	}
	key, err = k.openKey(ctx, workspace, version)
	return key, version, err
}

func (k *Keeper) openKey(ctx context.Context, workspace string, version int) (secret.DataKey, error) {
	stored, err := k.cfg.Store.GetDataKey(ctx, workspace, version)
	if err != nil {
		return secret.DataKey{}, err
	}
	if stored == nil {
		return secret.DataKey{}, fmt.Errorf("workspace %s has no data key of version %d", workspace, version)
	}
	return k.dataKey(workspace, *stored)
}

func (k *Keeper) dataKey(workspace string, stored Key) (secret.DataKey, error) {
	return k.cfg.Ring.OpenDataKey(binding(workspace, stored.Version), secret.Sealed{KeyID: stored.KeyID, WrappedKey: stored.WrappedKey})
}

func binding(workspace string, version int) secret.Binding {
	return secret.Binding{Workspace: workspace, AuthRef: keyName, Version: version}
}

// Rewrap wraps a data key with the first master key of the ring.
func Rewrap(ring *secret.Keyring, workspace string, stored Key) (Key, error) {
	fresh, err := ring.Rewrap(binding(workspace, stored.Version), secret.Sealed{KeyID: stored.KeyID, WrappedKey: stored.WrappedKey})
	return Key{Version: stored.Version, KeyID: fresh.KeyID, WrappedKey: fresh.WrappedKey}, err
}

// Read returns a payload. The error is autopost.ErrNoOrigin if its object does not exist: it was never stored, or its
// retention is over.
func (k *Keeper) Read(ctx context.Context, workspace, ref string) (json.RawMessage, error) {
	object, err := k.cfg.Bucket.ReadRaw(ctx, ref)
	if err != nil {
		return nil, err
	}
	line, sealed, _ := bytes.Cut(object, []byte("\n"))
	var version int
	if _, err := fmt.Sscanf(string(line)+"\n", header, &version); err != nil {
		return nil, fmt.Errorf("read %s: the object has no header", ref)
	}
	key, err := k.openKey(ctx, workspace, version)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	text, err := key.Open(ref, sealed)
	return text, err
}
