package twitter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/twitter"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simx "autopost/internal/sim/twitter"
)

const create = "POST /2/tweets"

// bench is X, and what a delivery to it has.
type bench struct {
	core   *sim.Core
	server *simx.Server
	media  *adaptertest.Materials
	url    string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	core, server := platform(t)
	listener := httptest.NewServer(adaptertest.Inspect(t, server, nil))
	t.Cleanup(listener.Close)
	return &bench{core: core, server: server, media: adaptertest.NewMaterials(), url: listener.URL}
}

func newAdapter(t *testing.T, base string) *twitter.Adapter {
	t.Helper()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	a, err := twitter.New(twitter.Config{BaseURL: base, Client: client})
	require.NoError(t, err)
	return a
}

func send(t *testing.T, base string, media autopost.Materials, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	return sendWithin(t, 20*time.Second, base, media, d)
}

func sendWithin(t *testing.T, limit time.Duration, base string, media autopost.Materials, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	o := newAdapter(t, base).Send(ctx, autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(signed), Media: media,
		Emit: func(context.Context, autopost.Acknowledged) error { return nil },
	})
	adaptertest.RequireSound(t, o, signed)
	return o
}

// saying is a post of a text.
func saying(text string) autopost.Delivery {
	return autopost.Delivery{
		TargetID: account, RenderedText: text,
		RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}},
	}
}

// showing is a post of a text with media of the kinds.
func (b *bench) showing(text string, kinds ...autopost.MediaKind) autopost.Delivery {
	d := saying(text)
	step := autopost.Step{Name: "media-1", Text: true}
	for i, kind := range kinds {
		d.Payload.Media = append(d.Payload.Media, autopost.Media{Type: kind, BlobRef: b.media.Add(kind)})
		step.Items = append(step.Items, i)
	}
	d.RenderMeta.Steps = []autopost.Step{step}
	return d
}

func (b *bench) fault(t *testing.T, f sim.Fault) {
	t.Helper()
	require.NoError(t, b.core.Faults.Add(f))
}

// calls counts the requests of a kind.
func (b *bench) calls(method string) int { return len(b.core.Log.Entries(sim.Filter{Method: method})) }

func TestEveryServerErrorToAPostIsAnUnknownOutcome(t *testing.T) {
	for _, status := range []int{500, 502, 503, 504} {
		for _, code := range []string{"code-131", "code-130", "internal"} {
			b := newBench(t)
			b.fault(t, sim.Fault{Method: create, Effect: sim.EffectStatus, Status: status, Code: code})
			o := send(t, b.url, b.media, saying("a"))
			require.NotNil(t, o.Error)
			require.False(t, o.Error.Known, "%d %s", status, code)
			require.NotEmpty(t, o.Error.Raw)
		}
	}
}

func TestALimitIsWaitedForUntilItsReset(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	at := func(wait time.Duration) string { return fmt.Sprint(now.Add(wait).Unix()) }
	for name, c := range map[string]struct {
		header map[string]string
		scope  autopost.Scope
		wait   time.Duration
	}{
		"the user's window":     {map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": at(100 * time.Second)}, autopost.ScopeChannel, 100 * time.Second},
		"one that is not used":  {map[string]string{"x-rate-limit-remaining": "3", "x-rate-limit-reset": at(100 * time.Second)}, autopost.ScopeChannel, 15 * time.Minute},
		"one that is just over": {map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": at(-time.Second)}, autopost.ScopeChannel, time.Second},
		"the latest": {map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": at(100 * time.Second),
			"x-user-limit-24hour-remaining": "0", "x-user-limit-24hour-reset": at(7 * time.Hour)}, autopost.ScopeChannel, 7 * time.Hour},
		"the app's day": {map[string]string{"x-rate-limit-remaining": "80", "x-rate-limit-reset": at(100 * time.Second),
			"x-app-limit-24hour-remaining": "0", "x-app-limit-24hour-reset": at(5 * time.Hour)}, autopost.ScopePlatform, 5 * time.Hour},
		"none is told": {nil, autopost.ScopeChannel, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Date", now.Format(http.TimeFormat)) // their clock counts, not ours
				for field, value := range c.header {
					w.Header().Set(field, value)
				}
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			t.Cleanup(server.Close)
			o := send(t, server.URL, nil, saying("a"))
			require.Equal(t, "x_429", o.Error.Code)
			require.Equal(t, c.scope, o.Error.Scope)
			require.Equal(t, c.wait.Milliseconds(), o.Error.RetryAfterMS)
		})
	}
}

func TestWhatAPostSays(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, fmt.Sprintf(`{"data":{"id":"%d","text":"x"}}`, len(bodies)))
	}))
	t.Cleanup(server.Close)
	d := saying("")
	d.RenderMeta.Steps = []autopost.Step{{Name: "text-1", Text: true, Body: "a < b"}, {Name: "text-2", Text: true, Body: "and on", ReplyTo: "text-1"}}
	d.Settings = json.RawMessage(`{"made_with_ai":true,"paid_partnership":true,"reply_settings":"following","community_id":"7","share_with_followers":true,"long_text":"split"}`)
	o := send(t, server.URL, nil, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, "1", o.ProviderMessageID)
	require.JSONEq(t, `{"text":"a < b","made_with_ai":true,"paid_partnership":true,"reply_settings":"following","community_id":"7","share_with_followers":true}`, bodies[0])
	require.JSONEq(t, `{"text":"and on","made_with_ai":true,"paid_partnership":true,"share_with_followers":true,"reply":{"in_reply_to_tweet_id":"1"}}`, bodies[1])
}

func TestWhatXWouldRefuseIsFoundBeforeAByteIsSent(t *testing.T) {
	b := newBench(t)
	long := saying("")
	long.RenderMeta.Steps = []autopost.Step{{Name: "text-1", Text: true, Body: "short"}, {Name: "text-2", Text: true, Body: strings.Repeat("字", 136), ReplyTo: "text-1"}}
	alt := b.showing("a", autopost.MediaImage)
	alt.Payload.Media[0].Alt = strings.Repeat("я", 1001)
	for name, c := range map[string]struct {
		delivery autopost.Delivery
		says     string
	}{
		"a part that is too long": {long, "step text-2 has a weighted length of 272, at most 270 is taken"},
		"a link without a scheme": {saying(strings.Repeat("a", 250) + " a.museum"), "weighted length of 274"},
		"an alternative text":     {alt, "media[0].alt has 1001 characters"},
		"a sound":                 {b.showing("a", autopost.MediaAudio), "media[0] is of no kind that X has"},
		"nothing":                 {saying(" \n"), "step text has neither text nor media"},
	} {
		o := send(t, b.url, b.media, c.delivery)
		require.Equal(t, "PERMANENT/delivery validation_failed", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), name)
		require.Contains(t, o.Error.Message, c.says, name)
	}
	require.Empty(t, b.core.Log.Entries())

	require.NoError(t, b.server.AddUser(simx.User{ID: account, Username: "nyx", MaxLength: 4000}))
	premium := saying(strings.Repeat("字", 400))
	premium.Settings = json.RawMessage(`{"max_weighted_length":4000}`)
	require.True(t, send(t, b.url, b.media, premium).OK, "a longer account says so")
}

func TestCredentialsThatAreNone(t *testing.T) {
	for secret, says := range map[string]string{
		`{"access_token":7}`: "no JSON object of strings",
		`{`:                  "no JSON object of strings",
		`{"client_id":"c","refresh_token":"r-canary"}`:   "access_token is missing",
		`{"access_token":"a","consumer_key":"k-canary"}`: "consumer_secret and access_token_secret are needed",
		"two words": "characters that no header may hold",
	} {
		o := newAdapter(t, "http://127.0.0.1:1").Send(t.Context(), autopost.Call{Delivery: saying("a"), Secret: autopost.NewSecret(secret)})
		require.Equal(t, "x_unauthorized", o.Error.Code)
		require.Equal(t, autopost.ScopeChannel, o.Error.Scope)
		require.Contains(t, o.Error.Message, says)
		require.NotContains(t, o.Error.Message, "canary")
	}
}

func TestEveryPartOfACredentialIsHidden(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"detail":"c/sec ret and t+secret `+strings.ReplaceAll(r.Header.Get("Authorization"), `"`, `'`)+`"}`)
	}))
	t.Cleanup(server.Close)
	o := send(t, server.URL, nil, saying("a"))
	for _, part := range []string{"ckey-canary", "c/sec ret", "42-token-canary", "t+secret"} {
		require.NotContains(t, o.Error.Message+string(o.Error.Raw), part)
	}
}

func TestAnAccessTokenOfOAuth2(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.server.AddApp(simx.App{Name: "linked", ClientID: "client", ClientSecret: "hush"}))
	access, refresh, err := b.server.GrantOAuth2("linked", account, simx.AllScopes)
	require.NoError(t, err)
	secret, err := json.Marshal(map[string]string{"client_id": "client", "client_secret": "hush", "refresh_token": refresh, "access_token": access})
	require.NoError(t, err)
	call := autopost.Call{Delivery: b.showing("a", autopost.MediaImage), Secret: autopost.NewSecret(string(secret)), Media: b.media}
	o := newAdapter(t, b.url).Send(t.Context(), call)
	require.True(t, o.OK, "%v", o.Error)
	b.server.ExpireTokens()
	o = newAdapter(t, b.url).Send(t.Context(), call)
	require.Equal(t, "x_unauthorized", o.Error.Code)
	require.True(t, o.Error.Known)
}
