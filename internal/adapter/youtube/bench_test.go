package youtube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/youtube"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

const (
	channelID = "UCdemo-channel"
	kib       = 1 << 10
)

// bench is a simulator with a channel, and an adapter with its credential.
type bench struct {
	t       *testing.T
	core    *sim.Core
	server  *simyoutube.Server
	media   *adaptertest.MediaAccess
	base    string
	cfg     youtube.Config
	adapter *youtube.Adapter
	secret  string
	refresh string
	// progress has the emitted steps, as the database keeps them. emit may return an error.
	progress map[string][]string
	emit     func(step string) error
	renewals int
}

func newBench(t *testing.T, project ...simyoutube.Project) *bench {
	t.Helper()
	return newBenchWith(t, published.YouTube(t), project...)
}

// newBenchWith checks requests against a given description.
func newBenchWith(t *testing.T, schema published.Schema, project ...simyoutube.Project) *bench {
	t.Helper()
	core := sim.NewCore(0)
	b := &bench{t: t, core: core, server: simyoutube.New(core, simyoutube.Options{}), media: adaptertest.NewMediaAccess(), progress: map[string][]string{}}
	p := simyoutube.Project{ID: "p", ClientID: "client", ClientSecret: "hush-hush-client"}
	if len(project) > 0 {
		p.Unaudited = project[0].Unaudited
	}
	require.NoError(t, b.server.AddProject(p))
	require.NoError(t, b.server.AddChannel(simyoutube.Channel{ID: channelID, Title: "Demo", Playlists: []string{"PLshow"}}))
	listener := httptest.NewServer(published.Inspect(t, mounted(b.server), schema))
	t.Cleanup(listener.Close)
	t.Cleanup(listener.CloseClientConnections)
	b.base = listener.URL
	b.cfg = youtube.Config{PartBytes: 256 * kib, Watch: time.Nanosecond}
	b.connect(b.base)
	b.grant(simyoutube.ScopeAll + " " + simyoutube.ScopeUpload)
	return b
}

// grant sets a new credential.
func (b *bench) grant(scopes string) {
	b.t.Helper()
	refresh, err := b.server.Grant("p", channelID, scopes)
	require.NoError(b.t, err)
	b.refresh = refresh
	b.secret = fmt.Sprintf(`{"client_id":"client","client_secret":"hush-hush-client","refresh_token":%q}`, refresh)
	b.renew()
}

// renew replaces the access token.
func (b *bench) renew() {
	b.t.Helper()
	renewed, failure := youtube.NewRefresher(b.base+"/google/token", b.cfg.Client).Refresh(b.t.Context(), autopost.NewSecret(b.secret))
	require.Nil(b.t, failure)
	b.secret = renewed.Secret.Reveal()
}

// connect replaces the adapter, like a restart of the process.
func (b *bench) connect(base string) {
	b.t.Helper()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(b.t, err)
	b.t.Cleanup(client.CloseIdleConnections)
	b.cfg.BaseURL, b.cfg.Client = base, client
	b.adapter, err = youtube.New(b.cfg)
	require.NoError(b.t, err)
}

// film returns a valid video of a size.
func film(size int) []byte {
	head := "\x00\x00\x00\x18ftypisom"
	out := []byte(head + strings.Repeat(".", size-len(head)))
	for i := len(head); i < len(out); i++ {
		out[i] = byte(i * 31 / 7)
	}
	return out
}

// show returns a delivery of a video of a size.
func (b *bench) show(size int) autopost.Delivery {
	d := plain(b.media)
	d.DeliveryID, d.TargetID = "0190-delivery", channelID
	d.Payload.Media[0].BlobRef = b.media.Put(film(size), "video/mp4")
	return d
}

// with adds a step for a medium of the kind.
func (b *bench) with(d autopost.Delivery, step string, kind autopost.MediaKind) autopost.Delivery {
	d.Payload.Media = append(d.Payload.Media, autopost.Media{Type: kind, BlobRef: b.media.Add(kind)})
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: step, Aside: true, Items: []int{len(d.Payload.Media) - 1}})
	return d
}

func (b *bench) call(d autopost.Delivery) autopost.Call {
	d.RenderMeta.Progress.Steps = maps.Clone(b.progress)
	return autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(b.secret), Media: b.media,
		Emit: func(_ context.Context, a autopost.Acknowledged) error {
			if b.emit != nil {
				if err := b.emit(a.Step); err != nil {
					return err
				}
			}
			require.NotNil(b.t, a.IDs)
			b.progress[a.Step] = a.IDs
			return nil
		},
		Renew: func(ctx context.Context) error {
			b.renewals++
			return ctx.Err()
		},
	}
}

// send makes one attempt with the recorded steps of earlier ones.
func (b *bench) send(d autopost.Delivery) autopost.Outcome {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	return b.sendContext(ctx, d)
}

func (b *bench) sendContext(ctx context.Context, d autopost.Delivery) autopost.Outcome {
	b.t.Helper()
	o := b.adapter.Send(ctx, b.call(d))
	adaptertest.RequireSound(b.t, o, b.secret)
	b.keepsSecrets(o)
	require.Zero(b.t, b.media.OpenContents())
	return o
}

// keepsSecrets checks that a value contains no credential and no session address.
func (b *bench) keepsSecrets(value any) {
	b.t.Helper()
	text, err := json.Marshal(value)
	require.NoError(b.t, err)
	for _, secret := range []string{"hush-hush-client", b.refresh, url.QueryEscape(b.refresh), "AEnB2U", "ya29."} {
		require.NotContains(b.t, string(text), secret)
	}
}

func (b *bench) fault(f sim.Fault) {
	b.t.Helper()
	require.NoError(b.t, b.core.Faults.Add(f))
}

// methods are the received calls except those for tokens and the account.
func (b *bench) methods() []string {
	var out []string
	for _, e := range b.core.Log.Entries() {
		if e.Method != "POST /token" && e.Method != "GET /youtube/v3/channels" {
			out = append(out, e.Method)
		}
	}
	return out
}

func (b *bench) count(method string) int { return len(b.core.Log.Entries(sim.Filter{Method: method})) }

// only returns the only video of the channel and checks its content.
func (b *bench) only(d autopost.Delivery) simyoutube.Video {
	b.t.Helper()
	videos := b.server.Videos(channelID)
	require.Len(b.t, videos, 1)
	require.Equal(b.t, d.Payload.Media[0].BlobRef, "sha256:"+videos[0].Media.Digest, "equal bytes")
	return videos[0]
}

// storedRaw is the stored part of an outcome.
type storedRaw struct {
	IDs          []string            `json:"ids"`
	Steps        map[string][]string `json:"steps"`
	URL          string              `json:"url"`
	UploadStatus string              `json:"upload_status"`
	Processing   string              `json:"processing"`
	Reason       string              `json:"reason"`
	Privacy      string              `json:"privacy"`
	PublishAt    string              `json:"publish_at"`
	Unread       string              `json:"unread"`
	Refused      map[string]string   `json:"refused"`
}

func (b *bench) stored(o autopost.Outcome) storedRaw {
	b.t.Helper()
	var out storedRaw
	require.NoError(b.t, json.Unmarshal(o.Raw, &out))
	return out
}

func (b *bench) failed(o autopost.Outcome, class string) {
	b.t.Helper()
	require.NotNil(b.t, o.Error, "sent: %+v", o)
	require.Equal(b.t, class, fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), "%s", o.Error)
	require.True(b.t, o.Error.Known)
}

// reverse sets a handler in front of the simulator.
func (b *bench) reverse(before func(w http.ResponseWriter, r *http.Request) bool) {
	b.t.Helper()
	platform := mounted(b.server)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !before(w, r) {
			platform.ServeHTTP(w, r)
		}
	}))
	b.t.Cleanup(listener.Close)
	b.connect(listener.URL)
}

func sorted(steps map[string][]string) []string { return slices.Sorted(maps.Keys(steps)) }

// released answers that the video is public.
func released(b *bench, id string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/youtube/v3/videos" {
			return false
		}
		_, err := fmt.Fprintf(w, `{"items":[{"id":%q,"status":{"uploadStatus":"processed","privacyStatus":"public"}}]}`, id)
		require.NoError(b.t, err)
		return true
	}
}
