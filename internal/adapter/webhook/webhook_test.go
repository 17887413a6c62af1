package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/webhook"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simwebhook "autopost/internal/sim/webhook"
)

const deliveryID = "01989f3a-7c1e-7a2b-8d3e-0123456789ab"

// bench is a receiver and the adapter with the daemon's client.
type bench struct {
	receiver *simwebhook.Server
	core     *sim.Core
	url      string
	adapter  *webhook.Adapter
	media    *adaptertest.MediaAccess
}

func guarded(allow ...netip.Prefix) *webhook.Adapter {
	return webhook.New(webhook.Config{Client: outbound.Guarded(outbound.GuardedConfig{Strict: true, Allow: allow})})
}

func newBench(t *testing.T) *bench {
	t.Helper()
	core := sim.NewCore(0)
	b := &bench{core: core, receiver: simwebhook.New(core, simwebhook.Options{}), media: adaptertest.NewMediaAccess()}
	require.NoError(t, b.receiver.AddEndpoint("news", secret))
	server := httptest.NewServer(b.receiver)
	t.Cleanup(server.Close)
	b.url, b.adapter = server.URL+"/news", guarded(netip.MustParsePrefix("127.0.0.0/8"))
	return b
}

func (b *bench) send(t *testing.T, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	if d.TargetID == "" {
		d.TargetID = b.url
	}
	return send(t, b.adapter, d, b.media)
}

func send(t *testing.T, a *webhook.Adapter, d autopost.Delivery, media autopost.MediaAccess) autopost.Outcome {
	t.Helper()
	o := a.Send(t.Context(), autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(secret), Media: media,
		Emit: func(ctx context.Context, _ autopost.Acknowledged) error { return ctx.Err() },
	})
	adaptertest.RequireSound(t, o, secret)
	return o
}

func text() autopost.Delivery {
	return autopost.Delivery{
		DeliveryID: deliveryID, ChannelID: "crm", RenderedText: "Plain", RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}},
	}
}

// The adapter sends what docs/webhook.md shows, and repeats it unchanged.
func TestRepeatedCallHasTheSameBody(t *testing.T) {
	b := newBench(t)
	d := text()
	d.RenderedText, d.RenderMeta.ParseMode = "<b>Q&amp;A</b> at <a href=\"https://example.org/?a=1&amp;b=2\">ours</a>: 1 &lt; 2", "HTML"
	d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org/"}}}
	d.Payload.Link = "https://example.org/"
	ref := b.media.Add(autopost.MediaFile)
	d.Payload.Media = []autopost.Media{{Type: autopost.MediaFile, BlobRef: ref, URL: "https://inside.test/?key=k", Caption: "The list", Alt: "a list"}}
	d.RenderMeta.Steps = []autopost.Step{{Name: "media-1", Text: true, Items: []int{0}}}

	o := b.send(t, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, deliveryID, o.ProviderMessageID)
	events := b.receiver.Events("news")
	require.Len(t, events, 1)
	require.Equal(t, deliveryID, events[0].ID)
	page, err := os.ReadFile("../../../docs/webhook.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, shown)
	require.JSONEq(t, string(shown[1]), string(events[0].Body))

	require.Equal(t, o.ProviderMessageID, b.send(t, d).ProviderMessageID)
	require.Equal(t, []string{"webhook-id was seen before"}, b.core.Log.Entries()[1].Notes, "the body is the same")
}

func TestPartsOfAPostHaveOwnIDs(t *testing.T) {
	b := newBench(t)
	d := text()
	d.RenderMeta.Steps = []autopost.Step{{Name: "text-1", Text: true, Body: "One"}, {Name: "text-2", Text: true, Body: "Two", ReplyTo: "text-1"}}
	require.Equal(t, deliveryID, b.send(t, d).ProviderMessageID)
	events := b.receiver.Events("news")
	require.Len(t, events, 2)
	require.Equal(t, []string{deliveryID, deliveryID + "-2"}, []string{events[0].ID, events[1].ID})
	var second post
	require.NoError(t, json.Unmarshal(events[1].Body, &second))
	require.Equal(t, []any{"Two", 2, 2, deliveryID}, []any{second.Text, second.Part, second.Parts, second.ReplyTo})
}

func TestSmallMediaAreInlineIfTheChannelAsks(t *testing.T) {
	b := newBench(t)
	d := media(b.media, autopost.MediaImage, autopost.MediaFile, autopost.MediaVideo)
	d.Payload.Media[1].Meta.Filename = "price.pdf"
	d.Settings = json.RawMessage(`{"inline_media_bytes": 40015}`)
	require.True(t, b.send(t, d).OK)
	var p post
	require.NoError(t, json.Unmarshal(b.receiver.Events("news")[0].Body, &p))
	for i, m := range p.Media[:2] {
		require.Equal(t, d.Payload.Media[i].BlobRef, "sha256:"+sim.Digest(m.Content))
	}
	require.Equal(t, int64(40015), p.Media[1].Size)
	require.Equal(t, []string{"", "price.pdf"}, []string{p.Media[0].Filename, p.Media[1].Filename})
	require.Empty(t, p.Media[2].Content, "too large to be inline")
}

// media returns a post without text, with new content in the media store.
func media(origin *adaptertest.MediaAccess, kinds ...autopost.MediaKind) autopost.Delivery {
	d := text()
	step := autopost.Step{Name: "media-1"}
	for i, kind := range kinds {
		d.Payload.Media = append(d.Payload.Media, autopost.Media{Type: kind, BlobRef: origin.Add(kind)})
		step.Items = append(step.Items, i)
	}
	d.RenderMeta.Steps = []autopost.Step{step}
	return d
}

// short is a media store whose contents end early.
type short struct{ *adaptertest.MediaAccess }

func (s short) Open(ctx context.Context, blobRef string) (*autopost.Content, error) {
	content, err := s.MediaAccess.Open(ctx, blobRef)
	if err == nil {
		content.Size++
	}
	return content, err
}

func TestContentThatEndsEarlyIsNotSent(t *testing.T) {
	b := newBench(t)
	d := media(b.media, autopost.MediaImage)
	d.TargetID, d.Settings = b.url, json.RawMessage(`{"inline_media_bytes": 1048576}`)
	o := send(t, b.adapter, d, short{b.media})
	require.NotNil(t, o.Error)
	require.Contains(t, o.Error.String(), "TRANSIENT/delivery media_origin_unavailable")
	require.Empty(t, b.core.Log.Entries())
}

func TestIDWithoutTimeGivesNoCreated(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"d-1", "6b1f3d3e-8a57-4c53-9b0a-5b0e6a1f0c11"} {
		d := text()
		d.DeliveryID = id
		require.Equal(t, id, b.send(t, d).ProviderMessageID)
	}
	for _, e := range b.receiver.Events("news") {
		require.NotContains(t, string(e.Body), "created")
	}
}

// answering is a receiver that always returns the same answer.
func answering(t *testing.T, status int, header http.Header, body string) autopost.Outcome {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	d := text()
	d.TargetID = server.URL
	return send(t, guarded(netip.MustParsePrefix("127.0.0.0/8")), d, nil)
}

func TestAny2xxAcceptsThePost(t *testing.T) {
	for body, id := range map[string]string{
		``: deliveryID, `ok`: deliveryID, `{"id": "r-1", "more": []}`: "r-1", `{"id": 7}`: deliveryID, `{"id": ""}`: deliveryID, `[]`: deliveryID, `null`: deliveryID,
		`{"id": "r-` + secret + `"}`: "r-[redacted]",
	} {
		o := answering(t, http.StatusCreated, nil, body)
		require.True(t, o.OK, "%s: %v", body, o.Error)
		require.Equal(t, id, o.ProviderMessageID, body)
	}
	require.Equal(t, deliveryID, answering(t, http.StatusNoContent, nil, "").ProviderMessageID)
}

func TestClassesOfRefusals(t *testing.T) {
	wait := func(value string) http.Header {
		return http.Header{"Retry-After": {value}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}}
	}
	for _, c := range []struct {
		status int
		header http.Header
		body   string
		want   string
	}{
		{500, nil, "", "TRANSIENT/delivery unknown_outcome false 0"},
		{500, wait("5"), `{"error":"db"}`, "TRANSIENT/delivery unknown_outcome false 0"},
		{502, nil, "<html>", "TRANSIENT/delivery unknown_outcome false 0"},
		{503, nil, "", "TRANSIENT/delivery unknown_outcome false 0"},
		{504, wait("5"), "", "TRANSIENT/delivery unknown_outcome false 0"},
		{503, wait("5"), "", "TRANSIENT/channel webhook_5xx true 5000"},
		{503, wait("soon"), "", "TRANSIENT/channel webhook_5xx true 0"},
		{429, wait("0"), "", "TRANSIENT/channel webhook_429 true 0"},
		{429, wait("Sun, 06 Nov 1994 08:51:37 GMT"), "", "TRANSIENT/channel webhook_429 true 120000"},
		{301, http.Header{"Location": {"/moved"}}, "", "PERMANENT/channel webhook_301 true 0"},
		{404, nil, strings.Repeat("x", 2<<20), "PERMANENT/channel webhook_404 true 0"},
		{200, nil, strings.Repeat("x", 2<<20), "TRANSIENT/delivery unknown_outcome false 0"},
	} {
		o := answering(t, c.status, c.header, c.body)
		require.NotNil(t, o.Error, "%d", c.status)
		require.Equal(t, c.want, fmt.Sprintf("%s/%s %s %t %d", o.Error.Category, o.Error.Scope, o.Error.Code, o.Error.Known, o.Error.RetryAfterMS), "%d %v", c.status, c.header)
	}
}

func TestInvalidChannelIsAPermanentFailureOfTheChannel(t *testing.T) {
	b := newBench(t)
	for target, code := range map[string]string{
		"receiver.test/a": "webhook_target_invalid", "ftp://receiver.test/": "webhook_target_invalid", "https://": "webhook_target_invalid",
		"https://user:word@receiver.test/": "webhook_target_invalid", "https://receiver.test/#a": "webhook_target_invalid",
		"http://93.184.215.14/": "target_refused", "https://169.254.169.254/": "target_refused", "https://93.184.215.14:22/": "target_refused",
	} {
		d := text()
		d.TargetID = target
		requireChannel(t, b.send(t, d), code, target)
	}
	for _, settings := range []string{`{"inline_media_bytes": -1}`, `{"inline_media_bytes": 1048577}`, `{"inline_media_bytes": 1.5}`, `[]`} {
		d := text()
		d.Settings = json.RawMessage(settings)
		requireChannel(t, b.send(t, d), "validation_failed", settings)
	}
	for _, wrong := range []string{"whsec_", "whsec_c2hvcnQ=", "whsec_not base64 at all, but long enough for it"} {
		d := text()
		d.TargetID = b.url
		requireChannel(t, b.adapter.Send(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(wrong)}), "webhook_secret_invalid", wrong)
	}
	require.Empty(t, b.core.Log.Entries())
}

func requireChannel(t *testing.T, o autopost.Outcome, code, what string) {
	t.Helper()
	require.NotNil(t, o.Error, what)
	require.Equal(t, "PERMANENT/channel "+code, strings.SplitN(o.Error.String(), ":", 2)[0], what)
	require.True(t, o.Error.Known, what)
}
