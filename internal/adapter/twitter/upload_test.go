package twitter_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/sim"
)

const (
	initialize = "POST /2/media/upload/initialize"
	appendPart = "POST /2/media/upload/{id}/append"
	finalize   = "POST /2/media/upload/{id}/finalize"
	describe   = "POST /2/media/metadata"
	status     = "GET /2/media/upload"
)

// film is a long video that counts how often it is opened.
type film struct {
	*adaptertest.MediaAccess
	size    int
	kind    string
	opened  int
	keptFor []time.Time
}

func (f *film) content() []byte {
	return append([]byte("\x00\x00\x00\x18ftypisom"), bytes.Repeat([]byte("frame and "), f.size/10)...)
}

func (f *film) Open(context.Context, string) (*autopost.Content, error) {
	f.opened++
	content := f.content()
	return &autopost.Content{ReadSeekCloser: open{bytes.NewReader(content)}, Size: int64(len(content)), ContentType: f.kind, Filename: "film.mp4"}, nil
}

type open struct{ *bytes.Reader }

func (open) Close() error { return nil }

func (f *film) Keep(ctx context.Context, blobRef, kind, id string, at time.Time) error {
	f.keptFor = append(f.keptFor, at)
	return f.MediaAccess.Keep(ctx, blobRef, kind, id, at)
}

func TestAVideoIsUploadedInChunksAndProcessed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetProcessing(1500 * time.Millisecond)
	long := &film{MediaAccess: b.media, size: 9 << 20, kind: "video/mp4"}
	o := send(t, b.url, long, b.showing("a film", autopost.MediaVideo))
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, 3, b.calls(appendPart))
	require.Positive(t, b.calls(status))
	post := b.server.Posts(account)[0]
	require.Equal(t, sim.Digest(long.content()), post.Media[0].Digest, "equal bytes")
	require.Equal(t, "video", post.Media[0].Kind)
	require.WithinRange(t, long.keptFor[0], time.Now().Add(23*time.Hour), time.Now().Add(24*time.Hour), "a little less than X's lifetime")
	for _, e := range b.core.Log.Entries() {
		require.Empty(t, e.Notes, e.Method)
	}
}

func TestAVideoInProcessingIsNotUploadedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetProcessing(3 * time.Second)
	d := b.showing("a film", autopost.MediaVideo)
	o := sendWithin(t, 4*time.Second, b.url, b.media, d)
	require.Equal(t, "x_media_not_ready", o.Error.Code)
	require.Equal(t, autopost.Transient, o.Error.Category)
	require.EqualValues(t, 1000, o.Error.RetryAfterMS)
	require.Zero(t, b.calls(create))

	o = send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, 1, b.calls(initialize))
	before := len(b.core.Log.Entries())
	d.RenderedText = "the film again"
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Len(t, b.core.Log.Entries(), before+1, "the id is cached")
}

func TestTheNextAttemptRepeatsALostUpload(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetProcessing(3 * time.Second)
	d := b.showing("a film", autopost.MediaVideo)
	require.Equal(t, "x_media_not_ready", sendWithin(t, 4*time.Second, b.url, b.media, d).Error.Code)
	b.server.ExpireMedia()
	b.server.SetProcessing(0)
	o := send(t, b.url, b.media, d)
	require.Equal(t, "x_upload_session_lost", o.Error.Code)
	require.Equal(t, autopost.Transient, o.Error.Category)
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Equal(t, 2, b.calls(initialize))
}

func TestAnExpiredIDIsUploadedAgainWithinTheAttempt(t *testing.T) {
	b := newBench(t)
	d := b.showing("a", autopost.MediaImage)
	require.True(t, send(t, b.url, b.media, d).OK)
	b.server.ExpireMedia()
	d.RenderedText = "b"
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Equal(t, 2, b.calls(initialize))
}

func TestAFailedUploadIsDefinite(t *testing.T) {
	for name, c := range map[string]struct {
		fault    sim.Fault
		category autopost.Category
		scope    autopost.Scope
		code     string
	}{
		"begin lost":      {sim.Fault{Method: initialize, Effect: sim.EffectAcceptThenDrop}, autopost.Transient, autopost.ScopeDelivery, "x_call_failed"},
		"chunk lost":      {sim.Fault{Method: appendPart, Effect: sim.EffectAcceptThenDrop}, autopost.Transient, autopost.ScopeDelivery, "x_call_failed"},
		"chunk cut":       {sim.Fault{Method: appendPart, Effect: sim.EffectResetMidBody}, autopost.Transient, autopost.ScopeDelivery, "x_call_failed"},
		"end lost":        {sim.Fault{Method: finalize, Effect: sim.EffectAcceptThenDrop}, autopost.Transient, autopost.ScopeDelivery, "x_call_failed"},
		"words lost":      {sim.Fault{Method: describe, Effect: sim.EffectAcceptThenDrop}, autopost.Transient, autopost.ScopeDelivery, "x_call_failed"},
		"a gateway":       {sim.Fault{Method: appendPart, Effect: sim.EffectGarbage}, autopost.Transient, autopost.ScopePlatform, "x_5xx"},
		"over capacity":   {sim.Fault{Method: finalize, Effect: sim.EffectStatus, Status: 503, Code: "code-130"}, autopost.Transient, autopost.ScopePlatform, "x_5xx"},
		"session gone":    {sim.Fault{Method: appendPart, Effect: sim.EffectStatus, Status: 404}, autopost.Transient, autopost.ScopeDelivery, "x_upload_session_lost"},
		"session gone, 2": {sim.Fault{Method: finalize, Effect: sim.EffectStatus, Status: 404}, autopost.Transient, autopost.ScopeDelivery, "x_upload_session_lost"},
		"conflict":        {sim.Fault{Method: finalize, Effect: sim.EffectStatus, Status: 409}, autopost.Transient, autopost.ScopeDelivery, "x_conflict"},
		"too large":       {sim.Fault{Method: appendPart, Effect: sim.EffectStatus, Status: 413}, autopost.Permanent, autopost.ScopeDelivery, "media_too_large"},
		"refused":         {sim.Fault{Method: initialize, Effect: sim.EffectStatus, Status: 400}, autopost.Permanent, autopost.ScopeDelivery, "validation_failed"},
		"no credits":      {sim.Fault{Method: describe, Effect: sim.EffectStatus, Status: 402}, autopost.Transient, autopost.ScopePlatform, "x_no_credits"},
		"limited":         {sim.Fault{Method: initialize, Effect: sim.EffectStatus, Status: 429}, autopost.Transient, autopost.ScopeChannel, "x_429"},
		"unauthorized":    {sim.Fault{Method: initialize, Effect: sim.EffectStatus, Status: 401}, autopost.Permanent, autopost.ScopeChannel, "x_unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.fault.To = 1
			b.fault(t, c.fault)
			d := b.showing("a", autopost.MediaImage)
			d.Payload.Media[0].Alt = "what is seen"
			o := send(t, b.url, b.media, d)
			require.NotNil(t, o.Error)
			require.True(t, o.Error.Known)
			require.Equal(t, c.code, o.Error.Code)
			require.Equal(t, c.category, o.Error.Category)
			require.Equal(t, c.scope, o.Error.Scope)
			require.Zero(t, b.calls(create))
			require.Zero(t, b.media.OpenContents())
			require.True(t, send(t, b.url, b.media, d).OK, "the next attempt starts again")
		})
	}
}

func TestAlternativeTexts(t *testing.T) {
	b := newBench(t)
	d := b.showing("one", autopost.MediaImage, autopost.MediaImage)
	d.Payload.Media[0].Alt = "a red square"
	require.True(t, send(t, b.url, b.media, d).OK)
	d.RenderedText = "two"
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Equal(t, 1, b.calls(describe), "the id keeps its alternative text")
	d.RenderedText, d.Payload.Media[0].Alt = "three", "a square that is red"
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Equal(t, 3, b.calls(initialize), "another alternative text needs another id")
	posts := b.server.Posts(account)
	require.Equal(t, [][]string{{"a red square", ""}, {"a red square", ""}, {"a square that is red", ""}},
		[][]string{posts[0].AltTexts, posts[1].AltTexts, posts[2].AltTexts})

	film := b.showing("four", autopost.MediaVideo)
	film.Payload.Media[0].Alt = "X takes none for a video"
	require.True(t, send(t, b.url, b.media, film).OK)
	require.Equal(t, 2, b.calls(describe))
}

func TestAMediumThatXCannotProcess(t *testing.T) {
	b := newBench(t)
	d := b.showing("a", autopost.MediaAnimation)
	o := send(t, b.url, &film{MediaAccess: b.media, size: 1 << 10, kind: "image/gif"}, d)
	require.Equal(t, "media_rejected", o.Error.Code)
	require.Equal(t, autopost.Permanent, o.Error.Category)
	require.Contains(t, o.Error.Message, "InvalidMedia")
}

func TestAnEarlyAnswerEndsTheReadOfAChunk(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/2/media/upload/initialize" {
			_, _ = io.WriteString(w, `{"data":{"id":"7"}}`)
			return
		}
		w.WriteHeader(http.StatusNotFound) // before the body is read
		_, _ = io.WriteString(w, `{"title":"Not Found"}`)
	}))
	t.Cleanup(server.Close)
	b := newBench(t)
	o := send(t, server.URL, &film{MediaAccess: b.media, size: 9 << 20, kind: "video/mp4"}, b.showing("a", autopost.MediaVideo))
	require.NotNil(t, o.Error)
	require.True(t, o.Error.Known)
	require.Contains(t, []string{"x_upload_session_lost", "x_call_failed"}, o.Error.Code)
}
