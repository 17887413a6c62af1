package maxmessenger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simmax "autopost/internal/sim/maxmessenger"
)

type bench struct {
	core   *sim.Core
	server *simmax.Server
	media  *adaptertest.MediaAccess
	url    string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	core, server := platform(t)
	listener := httptest.NewServer(published.Inspect(t, server, published.MAX(t)))
	t.Cleanup(listener.Close)
	return &bench{core: core, server: server, media: adaptertest.NewMediaAccess(), url: listener.URL}
}

func send(t *testing.T, base string, media autopost.MediaAccess, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	return sendWith(t, base, token, media, d)
}

func sendWith(t *testing.T, base, secret string, media autopost.MediaAccess, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	adapter, err := maxmessenger.New(maxmessenger.Config{BaseURL: base, Client: client})
	require.NoError(t, err)
	o := adapter.Send(t.Context(), autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(secret), Media: media,
		Emit: func(context.Context, autopost.Acknowledged) error { return nil },
	})
	adaptertest.RequireSound(t, o, secret)
	return o
}

func (b *bench) delivery(kinds ...autopost.MediaKind) autopost.Delivery {
	step := autopost.Step{Name: "media-1"}
	d := autopost.Delivery{TargetID: target, RenderedText: "<b>a</b>"}
	for i, kind := range kinds {
		d.Payload.Media = append(d.Payload.Media, autopost.Media{Type: kind, BlobRef: b.media.Add(kind)})
		step.Items = append(step.Items, i)
	}
	d.RenderMeta = autopost.RenderMeta{ParseMode: "HTML", Steps: []autopost.Step{step}}
	return d
}

func TestCaptionsBecomeTheTextOfAStepWithoutText(t *testing.T) {
	b := newBench(t)
	d := b.delivery(autopost.MediaImage, autopost.MediaImage, autopost.MediaImage)
	one, three := "<b>one</b>", "three"
	d.RenderMeta.Steps[0].Captions = []*string{&one, nil, &three}
	o := send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, "one\n\nthree", b.server.Messages(chatID)[0].Text)
	for _, e := range b.core.Log.Entries() {
		require.Empty(t, e.Notes, "%s: upload hosts get no token, lengths are exact, slots have no body", e.Method)
	}
}

func TestNotReadyIsRetriedWithTheSameUpload(t *testing.T) {
	b := newBench(t)
	b.server.SetProcessing(simmax.Processing{Attempts: 1})
	d := b.delivery(autopost.MediaVideo)
	o := send(t, b.url, b.media, d)
	require.Equal(t, "attachment.not.ready", o.Error.Code)
	require.EqualValues(t, 1000, o.Error.RetryAfterMS)
	require.Equal(t, autopost.Transient, o.Error.Category)

	o = send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}), 1)
}

func TestMixedAlbumUploadsAgainOnlyWhatWasKnown(t *testing.T) {
	b := newBench(t)
	d := b.delivery(autopost.MediaImage, autopost.MediaImage)
	require.NoError(t, b.media.Keep(t.Context(), d.Payload.Media[1].BlobRef, "image", "gone", time.Time{}))
	o := send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}), 2)
	require.Equal(t, []string{d.Payload.Media[1].BlobRef + " image"}, b.media.Forgets())
}

// MAX may refuse tokens that it has just issued, for hours. The content is not bad.
func TestTokenOfAnotherOwnerIsUploadedAgainOnceThenWaits(t *testing.T) {
	refusal := sim.Fault{Method: "POST /messages", Effect: sim.EffectStatus, Status: 400, Code: "proto.payload", Description: "Key: errors.process.attachment.movie.not.owner"}
	for _, times := range []int{1, 2} {
		b := newBench(t)
		refusal.To = times
		require.NoError(t, b.core.Faults.Add(refusal))
		d := b.delivery(autopost.MediaVideo)
		o := send(t, b.url, b.media, d)
		require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}), 2)
		require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /messages"}), 2)
		if times == 1 {
			require.True(t, o.OK, "%v", o.Error)
			continue
		}
		require.Equal(t, autopost.Transient, o.Error.Category)
		require.Equal(t, autopost.CodeMediaExpired, o.Error.Code)
		require.EqualValues(t, 600_000, o.Error.RetryAfterMS)
	}
}

// A channel refuses notify=false. Groups and dialogs have silent posts.
func TestSilentPosts(t *testing.T) {
	for chatType, silent := range map[string]bool{"channel": false, "chat": true, "dialog": true} {
		b := newBench(t)
		b.server.AddChat(simmax.Chat{ID: chatID, Type: chatType})
		d := b.delivery()
		d.RenderMeta.Steps = []autopost.Step{{Name: "text", Text: true, Body: "one"}, {Name: "text-1", Text: true, Body: "two"}}
		d.Settings = json.RawMessage(`{"disable_notification":true}`)
		o := send(t, b.url, b.media, d)
		require.True(t, o.OK, "%s: %v", chatType, o.Error)
		posts := b.core.Log.Entries(sim.Filter{Method: "POST /messages"})
		require.Len(t, posts, 2)
		for _, post := range posts {
			require.Equal(t, silent, slices.Contains(post.Badges, "silent"), chatType)
		}
		require.Len(t, b.core.Log.Entries(sim.Filter{Method: "GET /chats/{id}"}), 1, "once for a delivery")
	}
}

// While the type of the chat is unknown, a silent post is not sent.
func TestSilentPostToAnUnknownChat(t *testing.T) {
	for code, fault := range map[string]sim.Fault{
		"max_chat_unknown": {Method: "GET /chats/{id}", Effect: sim.EffectReset},
		"max_5xx":          {Method: "GET /chats/{id}", Effect: sim.EffectGarbage},
		"max_unauthorized": {Method: "GET /chats/{id}", Effect: sim.EffectStatus, Status: 401},
	} {
		b := newBench(t)
		require.NoError(t, b.core.Faults.Add(fault))
		d := b.delivery()
		d.RenderMeta.Steps[0].Text = true
		d.Settings = json.RawMessage(`{"disable_notification":true}`)
		o := send(t, b.url, b.media, d)
		require.Equal(t, code, o.Error.Code)
		require.True(t, o.Error.Known, "nothing was sent")
		require.Empty(t, b.core.Log.Entries(sim.Filter{Method: "POST /messages"}))
	}
}

func TestFailedUploadIsDefinite(t *testing.T) {
	for name, c := range map[string]struct {
		fault    sim.Fault
		category autopost.Category
		scope    autopost.Scope
		code     string
	}{
		"slot refused": {sim.Fault{Method: "POST /uploads", Effect: sim.EffectStatus, Status: 401, Code: "verify.token", Description: token},
			autopost.Permanent, autopost.ScopeChannel, "max_unauthorized"},
		"slot limited": {sim.Fault{Method: "POST /uploads", Effect: sim.EffectStatus, Status: 429, Code: "too.many.requests"},
			autopost.Transient, autopost.ScopeChannel, "max_429"},
		"slot lost": {sim.Fault{Method: "POST /uploads", Effect: sim.EffectAcceptThenDrop},
			autopost.Transient, autopost.ScopeDelivery, "max_upload_failed"},
		"slot of a gateway": {sim.Fault{Method: "POST /uploads", Effect: sim.EffectGarbage},
			autopost.Transient, autopost.ScopePlatform, "max_5xx"},
		"too large": {sim.Fault{Method: "upload image", Effect: sim.EffectStatus, Status: 413},
			autopost.Permanent, autopost.ScopeDelivery, "media_rejected"},
		"extension": {sim.Fault{Method: "upload image", Effect: sim.EffectStatus, Status: 415, Description: "File extension is forbidden"},
			autopost.Permanent, autopost.ScopeDelivery, "media_rejected"},
		"other refusal": {sim.Fault{Method: "upload image", Effect: sim.EffectStatus, Status: 404},
			autopost.Transient, autopost.ScopeDelivery, "max_upload_failed"},
		"upload lost": {sim.Fault{Method: "upload image", Effect: sim.EffectAcceptThenDrop},
			autopost.Transient, autopost.ScopeDelivery, "max_upload_failed"},
		"upload reset": {sim.Fault{Method: "upload image", Effect: sim.EffectResetMidBody},
			autopost.Transient, autopost.ScopeDelivery, "max_upload_failed"},
		"upload of a gateway": {sim.Fault{Method: "upload image", Effect: sim.EffectGarbage},
			autopost.Transient, autopost.ScopeDelivery, "max_upload_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			require.NoError(t, b.core.Faults.Add(c.fault))
			o := send(t, b.url, b.media, b.delivery(autopost.MediaImage))
			require.NotNil(t, o.Error)
			require.True(t, o.Error.Known)
			require.Equal(t, c.code, o.Error.Code)
			require.Equal(t, c.category, o.Error.Category)
			require.Equal(t, c.scope, o.Error.Scope)
			require.Empty(t, b.server.Messages(chatID))
			require.Zero(t, b.media.OpenContents())
		})
	}
}

// api answers each call with the test's answer for its path.
func api(t *testing.T, answers map[string]string, seen func(*http.Request, []byte)) string {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(published.Inspect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if seen != nil {
			seen(r, body)
		}
		if r.URL.Path == "/uploads" {
			_ = json.NewEncoder(w).Encode(map[string]string{"url": server.URL + "/upload/" + r.URL.Query().Get("type"), "token": answers["slot token"]})
			return
		}
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}), published.MAX(t)))
	t.Cleanup(server.Close)
	return server.URL
}

const posted = `{"message":{"timestamp":1795000000123,"body":{"mid":"mid.1","seq":116327994376978687}}}`

func TestMessageRequest(t *testing.T) {
	d := autopost.Delivery{TargetID: target, RenderedText: "plain & simple", Settings: json.RawMessage(`{"disable_notification":true}`)}
	d.RenderMeta = autopost.RenderMeta{
		DisablePreview: true, Steps: []autopost.Step{{Name: "text", Text: true}},
		Buttons: [][]autopost.Button{{{Text: "Open", URL: "https://example.org"}}},
	}
	base := api(t, map[string]string{"/messages": posted, "/chats/" + target: `{"type":"chat"}`}, func(r *http.Request, body []byte) {
		require.Equal(t, token, r.Header.Get("Authorization"))
		if r.URL.Path != "/messages" {
			return
		}
		require.Equal(t, "chat_id="+target+"&disable_link_preview=true", r.URL.RawQuery)
		require.JSONEq(t, `{"text":"plain & simple","link":null,"notify":false,"attachments":[{"type":"inline_keyboard",
			"payload":{"buttons":[[{"type":"link","text":"Open","url":"https://example.org"}]]}}]}`, string(body))
	})
	o := send(t, base, adaptertest.NewMediaAccess(), d)
	require.Equal(t, "mid.1", o.ProviderMessageID)
	require.EqualValues(t, 1795000000123, o.SentAt.UnixMilli())
}

func TestUploadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		kind               autopost.MediaKind
		path, answer, slot string
		token              string
	}{
		"photos":           {autopost.MediaImage, "/upload/image", `{"photos":{"b":{"token":"B"},"a":{"token":"A"}}}`, "", "A"},
		"image by token":   {autopost.MediaImage, "/upload/image", `{"token":"T"}`, "", "T"},
		"file":             {autopost.MediaFile, "/upload/file", `{"fileId":1,"token":"F"}`, "", "F"},
		"video":            {autopost.MediaVideo, "/upload/video", `<?xml version="1.0"?><retval>1</retval>`, "S", "S"},
		"video refused":    {autopost.MediaVideo, "/upload/video", `<?xml version="1.0"?><retval>0</retval>`, "S", ""},
		"image, no token":  {autopost.MediaImage, "/upload/image", `{"photos":{}}`, "", ""},
		"file, html":       {autopost.MediaFile, "/upload/file", `<html>`, "", ""},
		"audio, no answer": {autopost.MediaAudio, "/upload/audio", "", "S", "S"},
	} {
		t.Run(name, func(t *testing.T) {
			media := adaptertest.NewMediaAccess()
			base := api(t, map[string]string{"/messages": posted, c.path: c.answer, "slot token": c.slot}, func(r *http.Request, body []byte) {
				switch r.URL.Path {
				case "/messages":
					require.Contains(t, string(body), `{"token":"`+c.token+`"}`)
				case c.path:
					require.Empty(t, r.Header.Get("Authorization"))
				}
			})
			d := autopost.Delivery{TargetID: target, RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "media-1", Items: []int{0}}}}}
			d.Payload.Media = []autopost.Media{{Type: c.kind, BlobRef: media.Add(c.kind)}}
			o := send(t, base, media, d)
			require.Equal(t, c.token != "", o.OK)
			if c.token == "" {
				require.Equal(t, "max_upload_failed", o.Error.Code)
				require.True(t, o.Error.Known)
			}
		})
	}
}

// All errors of the simulator have the form of the published document.
func TestErrorsOfTheSimulatorHaveThePublishedForm(t *testing.T) {
	refusalOf := published.MAXError(t)
	core, server := platform(t)
	ask := func(method, target, auth, body string) {
		t.Helper()
		request := httptest.NewRequest(method, target, strings.NewReader(body))
		request.Header.Set("Authorization", auth)
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		require.GreaterOrEqual(t, answer.Code, 400, "%s %s %s", method, target, body)
		require.NoError(t, refusalOf(answer.Body.Bytes()), "%s %s %s: %s", method, target, body, answer.Body)
	}
	const post = "/messages?chat_id=" + target
	ask(http.MethodPost, post, "", `{"text":"a"}`)
	ask(http.MethodPost, post, "Bearer "+token, `{"text":"a"}`)
	ask(http.MethodPost, "/messages?chat_id=-1", token, `{"text":"a"}`)
	ask(http.MethodPost, "/messages", token, `{"text":"a"}`)
	ask(http.MethodPost, "/messages?chat_id=x", token, `{"text":"a"}`)
	ask(http.MethodPost, "/uploads?type=photo", token, "")
	ask(http.MethodPatch, "/messages", token, "")
	ask(http.MethodGet, "/chats/-1", token, "")
	ask(http.MethodGet, "/nothing", token, "")
	file := `{"type":"file","payload":{"token":"t"}}`
	for _, body := range []string{
		"{", `{}`, `{"text":1}`, `{"text":"` + strings.Repeat("a", 4001) + `"}`, `{"text":"a","format":"markup"}`,
		`{"attachments":[` + file + `,` + file + `]}`, `{"attachments":[{"type":"image","payload":{"token":"unknown"}}]}`,
		`{"attachments":[{"type":"image","payload":{"token":"a","url":"https://example.org/a.png"}}]}`,
		`{"text":"a","attachments":[{"type":"inline_keyboard","payload":{"buttons":[[{"type":"link","text":"a","url":"ftp://a"}]]}}]}`,
		`{"text":"a","attachments":[{"type":"hologram"}]}`,
	} {
		ask(http.MethodPost, post, token, body)
	}
	for _, status := range []int{400, 401, 403, 404, 405, 429, 500, 503} {
		require.NoError(t, core.Faults.Add(sim.Fault{Effect: sim.EffectStatus, Status: status, To: 1}))
		ask(http.MethodPost, post, token, `{"text":"a"}`)
	}
}

func TestErrorsOfStatus200(t *testing.T) {
	for name, c := range map[string]struct {
		answer, code string
		known        bool
	}{
		"success false":            {`{"success":false,"message":"no"}`, "max_simple_error", true},
		"success false, not ready": {`{"success":false,"message":"Key: errors.process.attachment.file.not.processed"}`, "attachment.not.ready", true},
		"a code":                   {`{"code":"account.blocked","message":"x"}`, "max_account_blocked", true},
		"success false, limited":   {`{"success":false,"message":"too.many.requests"}`, "max_429", true},
		"success false, no rights": {`{"success":false,"message":"chat.denied"}`, "max_chat_denied", true},
		"no id":                    {`{"message":{"body":{}}}`, autopost.CodeUnknownOutcome, false},
		"success without message":  {`{"success":true}`, autopost.CodeUnknownOutcome, false},
		"html":                     {`<html>`, autopost.CodeUnknownOutcome, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := autopost.Delivery{TargetID: target, RenderedText: "a", RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}}}
			o := send(t, api(t, map[string]string{"/messages": c.answer}, nil), adaptertest.NewMediaAccess(), d)
			require.NotNil(t, o.Error)
			require.Equal(t, c.code, o.Error.Code)
			require.Equal(t, c.known, o.Error.Known)
		})
	}
}

// Only MAX's own form may stop a bot or a channel.
func TestPageOfAProxyIsNotMAXsAnswer(t *testing.T) {
	d := autopost.Delivery{TargetID: target, RenderedText: "a", RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}}}
	for _, status := range []int{400, 401, 403, 404, 405, 407, 451} {
		for _, body := range []string{"<html>access.denied</html>", "", `{"error":"verify.token"}`, `{"code":401,"message":"verify.token"}`} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}))
			o := send(t, server.URL, adaptertest.NewMediaAccess(), d)
			server.Close()
			require.Equal(t, "TRANSIENT/platform max_gateway", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), "%d %s", status, body)
			require.True(t, o.Error.Known, "nothing was sent")
		}
	}
}

// An error may match two rows: its key and its text differ.
func TestTheMostSevereReasonWins(t *testing.T) {
	for _, c := range []struct {
		status       int
		answer, code string
	}{
		{403, `{"code":"account.blocked","message":"chat.denied"}`, "max_account_blocked"},
		{400, `{"code":"verify.token","message":"Invalid file token provided"}`, "max_unauthorized"},
		{400, `{"code":"proto.payload","message":"Key: errors.process.attachment.video.not.supported, invalid token"}`, "media_rejected"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.answer)
		}))
		d := autopost.Delivery{TargetID: target, RenderedText: "a", RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}}}
		o := send(t, server.URL, adaptertest.NewMediaAccess(), d)
		server.Close()
		require.Equal(t, c.code, o.Error.Code, c.answer)
	}
}

func TestSlotWithoutAURLIsAFailedUpload(t *testing.T) {
	for _, address := range []string{"", "ftp://127.0.0.1/x", "/relative", "http://%zz"} {
		media := adaptertest.NewMediaAccess()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"url": address})
		}))
		d := autopost.Delivery{TargetID: target, RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "media-1", Items: []int{0}}}}}
		d.Payload.Media = []autopost.Media{{Type: autopost.MediaImage, BlobRef: media.Add(autopost.MediaImage)}}
		o := send(t, server.URL, media, d)
		server.Close()
		require.Equal(t, "max_upload_failed", o.Error.Code, address)
		require.Zero(t, media.OpenContents())
	}
}

// A failure of an upload host concerns only the posts that need it.
func TestUnreachableUploadHostConcernsTheDelivery(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for code, host := range map[string]string{"tls_untrusted": untrusted.URL, "net_connect": gone.URL} {
		media := adaptertest.NewMediaAccess()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"url": host + "/upload"})
		}))
		d := autopost.Delivery{TargetID: target, RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "media-1", Items: []int{0}}}}}
		d.Payload.Media = []autopost.Media{{Type: autopost.MediaImage, BlobRef: media.Add(autopost.MediaImage)}}
		o := send(t, server.URL, media, d)
		server.Close()
		require.Equal(t, code, o.Error.Code)
		require.Equal(t, autopost.ScopeDelivery, o.Error.Scope)
		require.Zero(t, media.OpenContents())
	}
}

func TestTokenMustFitAHeader(t *testing.T) {
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	adapter, err := maxmessenger.New(maxmessenger.Config{BaseURL: "http://127.0.0.1:1", Client: client})
	require.NoError(t, err)
	o := adapter.Send(t.Context(), autopost.Call{Delivery: autopost.Delivery{TargetID: target}, Secret: autopost.NewSecret("abc\ndef")})
	require.Equal(t, "max_unauthorized", o.Error.Code)
}

// gifs gives each content the type image/gif.
type gifs struct{ *adaptertest.MediaAccess }

func (g gifs) Open(ctx context.Context, blobRef string) (*autopost.Content, error) {
	content, err := g.MediaAccess.Open(ctx, blobRef)
	if err == nil {
		content.ContentType, content.Filename = "image/gif", "a.gif"
	}
	return content, err
}

func TestGIFIsAnImage(t *testing.T) {
	b := newBench(t)
	d := b.delivery(autopost.MediaAnimation)
	for range 2 { // the second time with the cached token
		o := send(t, b.url, gifs{b.media}, d)
		require.True(t, o.OK, "%v", o.Error)
	}
	require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}), 1)
	require.Equal(t, "image", b.server.Messages(chatID)[1].Media[0].Kind)
}

// Each legal mix of media is sent as one message with its buttons.
func TestEveryLegalMessage(t *testing.T) {
	const image, video, audio, file = autopost.MediaImage, autopost.MediaVideo, autopost.MediaAudio, autopost.MediaFile
	for name, kinds := range map[string][]autopost.MediaKind{
		"pictures and videos, twelve with the buttons": {image, video, image, video, image, video, image, video, image, video, image},
		"a video": {video}, "music": {audio}, "a file": {file}, "an animation": {autopost.MediaAnimation},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			d := b.delivery(kinds...)
			d.RenderMeta.Steps[0].Text = true
			d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org"}}}
			o := send(t, b.url, b.media, d)
			require.True(t, o.OK, "%v", o.Error)
			messages := b.server.Messages(chatID)
			require.Len(t, messages, 1)
			require.Len(t, messages[0].Media, len(kinds))
			require.Equal(t, "a", messages[0].Text)
			posts := b.core.Log.Entries(sim.Filter{Method: "POST /messages"})
			require.Len(t, posts, 1)
			require.Len(t, posts[0].Buttons, 1)
			require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}), len(kinds), "one slot for each medium")
		})
	}
}

// The upload policy may let MAX fetch an image. If it cannot, the content is uploaded in the same attempt.
func TestImageIsSentByItsSourceURL(t *testing.T) {
	const source = "https://example.org/1.png?signature=s"
	b := newBench(t)
	d := b.delivery(autopost.MediaImage)
	b.media.Allow(d.Payload.Media[0].BlobRef, "image", source)
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Equal(t, source, b.server.Messages(chatID)[0].Media[0].URL)
	require.Empty(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}))

	require.NoError(t, b.core.Faults.Add(sim.Fault{Method: "POST /messages", Effect: sim.EffectStatus, Status: 400, Code: "proto.payload", Description: "Invalid photo url: " + source, From: 1, To: 1}))
	o := send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Empty(t, b.server.Messages(chatID)[1].Media[0].URL)
	require.Equal(t, []string{d.Payload.Media[0].BlobRef + " image"}, b.media.Forgets())
	require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}), 1)
}

func TestKnownTokenGoesBeforeTheSourceURL(t *testing.T) {
	b := newBench(t)
	d := b.delivery(autopost.MediaImage)
	require.True(t, send(t, b.url, b.media, d).OK)
	b.media.Allow(d.Payload.Media[0].BlobRef, "image", "https://example.org/1.png")
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Empty(t, b.server.Messages(chatID)[1].Media[0].URL)
}

func TestAttachmentTokenOfAPostIsSent(t *testing.T) {
	b := newBench(t)
	d := b.delivery(autopost.MediaImage)
	require.True(t, send(t, b.url, b.media, d).OK)
	known, _, err := b.media.Cached(t.Context(), d.Payload.Media[0].BlobRef, "image")
	require.NoError(t, err)
	d.Payload.Media[0] = autopost.Media{Type: autopost.MediaImage, AttachmentToken: known}
	require.True(t, send(t, b.url, b.media, d).OK)
	require.Len(t, b.core.Log.Entries(sim.Filter{Method: "POST /uploads"}), 1)

	d.Payload.Media[0].AttachmentToken = "of another bot"
	o := send(t, b.url, b.media, d)
	require.Equal(t, autopost.CodeMediaMissingOrigin, o.Error.Code)
	require.Empty(t, b.media.Forgets(), "it is not ours to forget")
}
