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
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/twitter"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simx "autopost/internal/sim/twitter"
)

const create = "POST /2/tweets"

// bench is a simulator, its address, and the media of deliveries.
type bench struct {
	core   *sim.Core
	server *simx.Server
	media  *adaptertest.MediaAccess
	url    string
	// adapter is kept between calls if a test sets it.
	adapter *twitter.Adapter
	// names are the parameters for fields in the requests, in order.
	names []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchWith(t, published.X(t))
}

// newBenchWith checks requests against a given description.
func newBenchWith(t *testing.T, schema published.Schema) *bench {
	t.Helper()
	core, server := platform(t)
	b := &bench{core: core, server: server, media: adaptertest.NewMediaAccess()}
	listener := httptest.NewServer(published.Inspect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"post.fields", "tweet.fields"} {
			if r.URL.Query().Has(name) {
				b.names = append(b.names, name)
			}
		}
		server.ServeHTTP(w, r)
	}), schema))
	t.Cleanup(listener.Close)
	b.url = listener.URL
	return b
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

func send(t *testing.T, base string, media autopost.MediaAccess, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	return sendWithin(t, 20*time.Second, base, media, d)
}

func sendWithin(t *testing.T, limit time.Duration, base string, media autopost.MediaAccess, d autopost.Delivery) autopost.Outcome {
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

// saying returns a delivery of a text.
func saying(text string) autopost.Delivery {
	return autopost.Delivery{
		TargetID: account, RenderedText: text,
		RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}},
	}
}

// showing returns a delivery of a text with media of the kinds.
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

// calls counts the requests of a method.
func (b *bench) calls(method string) int { return len(b.core.Log.Entries(sim.Filter{Method: method})) }

func TestEveryServerErrorOfAPostIsAnUnknownOutcome(t *testing.T) {
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

func TestALimitWaitsUntilItsReset(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	at := func(wait time.Duration) string { return fmt.Sprint(now.Add(wait).Unix()) }
	for name, c := range map[string]struct {
		header map[string]string
		scope  autopost.Scope
		wait   time.Duration
	}{
		"the user's window":        {map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": at(100 * time.Second)}, autopost.ScopeChannel, 100 * time.Second},
		"an unused window":         {map[string]string{"x-rate-limit-remaining": "3", "x-rate-limit-reset": at(100 * time.Second)}, autopost.ScopeChannel, 15 * time.Minute},
		"a window that just ended": {map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": at(-time.Second)}, autopost.ScopeChannel, time.Second},
		"the latest": {map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": at(100 * time.Second),
			"x-user-limit-24hour-remaining": "0", "x-user-limit-24hour-reset": at(7 * time.Hour)}, autopost.ScopeChannel, 7 * time.Hour},
		"the app's day": {map[string]string{"x-rate-limit-remaining": "80", "x-rate-limit-reset": at(100 * time.Second),
			"x-app-limit-24hour-remaining": "0", "x-app-limit-24hour-reset": at(5 * time.Hour)}, autopost.ScopePlatform, 5 * time.Hour},
		"no headers": {nil, autopost.ScopeChannel, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Date", now.Format(http.TimeFormat)) // the wait counts from X's clock
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

func TestASpendingLimitWaitsUntilItsResetDate(t *testing.T) {
	now := time.Date(2026, 11, 23, 6, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		status int
		body   string
		wait   time.Duration
	}{
		"a date": {403, `{"title":"SpendCapReached","detail":"No.","reset_date":"2026-12-13","type":"https://api.twitter.com/2/problems/credits"}`,
			time.Date(2026, 12, 13, 0, 0, 0, 0, time.UTC).Sub(now)},
		"a type alone":        {403, `{"title":"Forbidden","reset_date":"2026-11-24","type":"https://api.x.com/2/problems/credits"}`, 17*time.Hour + 30*time.Minute},
		"no credits":          {402, `{"title":"CreditsDepleted","reset_date":"2026-11-24"}`, 17*time.Hour + 30*time.Minute},
		"too many requests":   {429, `{"title":"SpendCapReached","reset_date":"2026-11-24"}`, 17*time.Hour + 30*time.Minute},
		"a time":              {403, `{"title":"SpendCapReached","reset_date":"2026-11-23T08:30:00Z"}`, 2 * time.Hour},
		"no date":             {403, `{"title":"SpendCapReached"}`, time.Hour},
		"a date that is past": {403, `{"title":"SpendCapReached","reset_date":"2026-11-13"}`, time.Hour},
		"an invalid date":     {403, `{"title":"SpendCapReached","reset_date":"soon"}`, time.Hour},
		"a date far away":     {403, `{"title":"SpendCapReached","reset_date":"9999-12-31"}`, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Date", now.Format(http.TimeFormat))
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(server.Close)
			o := send(t, server.URL, nil, saying("a"))
			require.Equal(t, "TRANSIENT/platform x_no_credits", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code))
			require.Equal(t, c.wait.Milliseconds(), o.Error.RetryAfterMS)
		})
	}
}

func TestAProxyPageIsNotAnAnswerOfX(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 407, 451} {
		b := newBench(t)
		require.True(t, send(t, b.url, b.media, saying("before")).OK)
		sent := b.server.Posts(account)[0].ID
		b.fault(t, sim.Fault{Effect: sim.EffectGarbage, Status: status})
		d := b.showing("a", autopost.MediaImage)
		o := send(t, b.url, b.media, d)
		require.Equal(t, "TRANSIENT/platform x_gateway", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), status)
		require.True(t, o.Error.Known)
		d.RenderMeta.Progress.Steps = map[string][]string{"media-1": {sent}}
		failure := newAdapter(t, b.url).Delete(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(signed)})
		require.NotNil(t, failure, "a 404 of a proxy does not show that the post is gone")
		require.Equal(t, "x_gateway", failure.Code)
	}
}

func TestFieldsOfAPost(t *testing.T) {
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

	d.RenderMeta.Post = autopost.Post{MadeWithAI: new(bool), ReplySettings: "everyone"}
	require.True(t, send(t, server.URL, nil, d).OK)
	require.JSONEq(t, `{"text":"a < b","paid_partnership":true,"community_id":"7","share_with_followers":true}`, bodies[2], "the fields of the post take precedence")
	d.RenderMeta.Post.ReplySettings = "verified"
	require.True(t, send(t, server.URL, nil, d).OK)
	require.Contains(t, bodies[4], `"reply_settings":"verified"`)
}

func TestInvalidDeliveriesAreRefusedBeforeTheFirstByte(t *testing.T) {
	b := newBench(t)
	long := saying("")
	long.RenderMeta.Steps = []autopost.Step{{Name: "text-1", Text: true, Body: "short"}, {Name: "text-2", Text: true, Body: strings.Repeat("字", 136), ReplyTo: "text-1"}}
	alt := b.showing("a", autopost.MediaImage)
	alt.Payload.Media[0].Alt = strings.Repeat("я", 1001)
	for name, c := range map[string]struct {
		delivery autopost.Delivery
		want     string
	}{
		"a part that is too long": {long, "step text-2 has a weighted length of 272, the limit is 270"},
		"a link without a scheme": {saying(strings.Repeat("a", 250) + " a.museum"), "weighted length of 274"},
		"an alternative text":     {alt, "media[0].alt must have at most 1000 characters, got 1001"},
		"a sound":                 {b.showing("a", autopost.MediaAudio), "media[0] must be an image, a video or an animation"},
		"nothing":                 {saying(" \n"), "step text has neither text nor media"},
	} {
		o := send(t, b.url, b.media, c.delivery)
		require.Equal(t, "PERMANENT/delivery validation_failed", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), name)
		require.Contains(t, o.Error.Message, c.want, name)
	}
	require.Empty(t, b.core.Log.Entries())

	require.NoError(t, b.server.AddUser(simx.User{ID: account, Username: "nyx", MaxLength: 4000}))
	premium := saying(strings.Repeat("字", 400))
	premium.Settings = json.RawMessage(`{"max_weighted_length":4000}`)
	require.True(t, send(t, b.url, b.media, premium).OK, "the settings raise the limit")
}

func TestInvalidCredentials(t *testing.T) {
	for secret, want := range map[string]string{
		`{"access_token":7}`: "must be a JSON object of strings",
		`{`:                  "must be a JSON object of strings",
		`{"client_id":"c","refresh_token":"r-canary"}`:   "access_token is missing",
		`{"access_token":"a","consumer_key":"k-canary"}`: "consumer_key needs consumer_secret and access_token_secret",
		"two words": "characters that a header must not have",
	} {
		o := newAdapter(t, "http://127.0.0.1:1").Send(t.Context(), autopost.Call{Delivery: saying("a"), Secret: autopost.NewSecret(secret)})
		require.Equal(t, "x_unauthorized", o.Error.Code)
		require.Equal(t, autopost.ScopeChannel, o.Error.Scope)
		require.Contains(t, o.Error.Message, want)
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
