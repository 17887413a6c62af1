package adaptertest

import (
	"context"
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/sim"
)

// Harness describes a platform for the suite.
type Harness struct {
	Secret, Target string
	// Simulator returns a new simulator that knows the secret and the target and has no rate limits.
	Simulator func(t *testing.T) (*sim.Core, http.Handler)
	// New returns the adapter under test.
	New func(baseURL string, client adapter.Doer) (autopost.Adapter, error)
	// Refresher returns the refresher of the platform's credentials, with its token endpoint at the
	// address; nil if credentials are not renewed.
	Refresher func(baseURL string, client adapter.Doer) autopost.Refresher
	// Schema checks every request against the platform's published schema; nil without one.
	Schema published.Schema
	// Plain returns the simplest delivery of a platform that does not accept a text alone, and adds its
	// content to m. The cases about messages are then left out. Nil means a text.
	Plain func(m *MediaAccess) autopost.Delivery
	// Asks: the adapter asks the platform for the post before it repeats a call, so a lost answer is a
	// transient failure.
	Asks bool

	// TextMethod is the method of the simplest delivery. TextMethod, AlbumMethod and MediaMethods are
	// the methods of posting calls in the log.
	TextMethod, AlbumMethod string
	MediaMethods            map[autopost.MediaKind]string
	// FileKinds are the kinds under which upload ids are stored, for all supported media.
	FileKinds map[autopost.MediaKind]string
	// NoMarkup: the platform has neither markup nor buttons.
	NoMarkup bool
	// Album is a list of media that fit into one post; default two pictures and a video.
	Album []autopost.MediaKind
	// BadSettings are invalid settings; default a disable_notification that is not a boolean.
	BadSettings string
	// Longest is the longest allowed text in the platform's unit; "" leaves the case out.
	Longest string
	// Lookup: the adapter is a Reconciler without further settings, and the simulator shows new posts
	// at once.
	Lookup bool
	// LookupSettings are channel settings with which a Reconciler asks the platform; "" for none.
	LookupSettings string
	// NoSettings: the adapter reads no channel settings. NoReplies: a post cannot reply to another.
	NoSettings, NoReplies bool
	// Expired is the platform's answer to an invalid media id.
	Expired Row
	// Definite5xx is a server error in the platform's own form. If every server error leaves the
	// outcome unknown, it is another transient failure.
	Definite5xx Row
	// Rows are the error classes for posting a text.
	Rows []Row

	// Changes are the supported post changes, each with the method of its call in the log. ChangeRows are the
	// platform's refusals; a row without a class is a success.
	Changes    map[autopost.ChangeKind]string
	ChangeRows map[autopost.ChangeKind][]Row
	// OnePin: a chat has one pinned message, so only part 1 of a thread is pinned.
	OnePin bool

	// NoUploads: media are sent only with the post, so there are no upload ids.
	NoUploads bool
	// OwnHost: each target is its own host, so a failure of the host concerns the channel instead
	// of the platform.
	OwnHost bool
	// AnyBody: every status 2xx is an acknowledgement, whatever its body.
	AnyBody bool
	// Read completes a log entry from the post; nil if the log is complete.
	Read func(e *sim.Entry)
}

// Row is an answer of the platform, and the error that the adapter must return.
type Row struct {
	Status int
	// Code is the platform's error key, if it has one.
	Code        string
	Description string
	// RetryAfter is in seconds.
	RetryAfter int
	Want       Class
}

// Class is the part of an error on which the database decides.
type Class struct {
	Category     autopost.Category
	Scope        autopost.Scope
	Code         string
	RetryAfterMS int64
}

// bench is a simulator, an adapter that calls it, and the media of the delivery.
type bench struct {
	Harness
	core *sim.Core
	// handler is the simulator with checks.
	handler   http.Handler
	adapter   autopost.Adapter
	refresher autopost.Refresher
	media     *MediaAccess
	emitted   []autopost.Acknowledged
}

// makeBench returns a bench without an address.
func makeBench(t *testing.T, h Harness) *bench {
	t.Helper()
	core, handler := h.Simulator(t)
	return &bench{Harness: h, core: core, handler: published.Inspect(t, handler, h.Schema), media: NewMediaAccess()}
}

func newBench(t *testing.T, h Harness) *bench {
	t.Helper()
	b := makeBench(t, h)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	b.connect(t, server.URL)
	return b
}

// connect sets the adapter's base URL.
func (b *bench) connect(t *testing.T, address string) {
	t.Helper()
	client := newClient(t)
	var err error
	b.adapter, err = b.New(address, client)
	require.NoError(t, err)
	if b.Refresher != nil {
		b.refresher = b.Refresher(address, client)
	}
}

// delivery returns a post to the target, with markup if the platform has it.
func (b *bench) delivery(steps ...autopost.Step) autopost.Delivery {
	d := autopost.Delivery{
		DeliveryID: "d-1", TargetID: b.Target, RenderedText: b.said("<b>News</b> &amp; more"),
		RenderMeta: autopost.RenderMeta{ParseMode: "HTML", Steps: steps},
	}
	if b.NoMarkup {
		d.RenderMeta.ParseMode = ""
	}
	return d
}

var markup = regexp.MustCompile(`</?[a-z]+>`)

// said returns a text, given with markup, in the platform's format.
func (b *bench) said(text string) string {
	if b.NoMarkup {
		return html.UnescapeString(markup.ReplaceAllString(text, ""))
	}
	return text
}

// kinds returns the media kinds that the platform supports.
func (h Harness) kinds() []autopost.MediaKind {
	return slices.Sorted(maps.Keys(h.MediaMethods))
}

// notPicture returns a supported kind that is not a picture.
func (h Harness) notPicture() autopost.MediaKind {
	if _, ok := h.MediaMethods[autopost.MediaFile]; ok {
		return autopost.MediaFile
	}
	return autopost.MediaVideo
}

// plain returns the simplest delivery of the platform.
func (b *bench) plain() autopost.Delivery {
	if b.Plain == nil {
		return b.delivery(textStep)
	}
	d := b.Plain(b.media)
	d.DeliveryID, d.TargetID = "d-1", b.Target
	return d
}

// another returns a plain delivery that differs from the first.
func (b *bench) another() autopost.Delivery {
	d := b.plain()
	d.DeliveryID, d.RenderedText = "d-2", d.RenderedText+", and the next"
	return d
}

// withMedia adds media of the kinds to the delivery, with content in the store.
func (b *bench) withMedia(d autopost.Delivery, kinds ...autopost.MediaKind) autopost.Delivery {
	for _, kind := range kinds {
		d.Payload.Media = append(d.Payload.Media, autopost.Media{Type: kind, BlobRef: b.media.Add(kind)})
	}
	return d
}

func (b *bench) send(t *testing.T, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return b.sendContext(ctx, t, d)
}

func (b *bench) sendContext(ctx context.Context, t *testing.T, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	call := b.call(d)
	call.Emit = func(_ context.Context, a autopost.Acknowledged) error {
		b.emitted = append(b.emitted, a)
		return nil
	}
	outcome := b.adapter.Send(ctx, call)
	RequireSound(t, outcome, b.Secret)
	return outcome
}

// hostScope returns the scope of a failure of the host.
func (h Harness) hostScope() autopost.Scope {
	if h.OwnHost {
		return autopost.ScopeChannel
	}
	return autopost.ScopePlatform
}

// call returns a call that records nothing.
func (b *bench) call(d autopost.Delivery) autopost.Call {
	return autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(b.Secret), Media: b.media,
		Emit:  func(context.Context, autopost.Acknowledged) error { return nil },
		Renew: func(context.Context) error { return nil },
	}
}

// posts returns the log entries of calls that make messages.
func (b *bench) posts() []sim.Entry {
	var out []sim.Entry
	for _, e := range b.core.Log.Entries() {
		if b.posting(e.Method) {
			if b.Read != nil {
				b.Read(&e)
			}
			out = append(out, e)
		}
	}
	return out
}

func (b *bench) posting(method string) bool {
	if method == b.TextMethod || method == b.AlbumMethod {
		return true
	}
	for _, m := range b.MediaMethods {
		if m == method {
			return true
		}
	}
	return false
}

func (b *bench) accepted() []sim.Entry {
	return slices.DeleteFunc(b.posts(), func(e sim.Entry) bool { return !e.Accepted })
}

func (b *bench) fault(t *testing.T, f sim.Fault) {
	t.Helper()
	require.NoError(t, b.core.Faults.Add(f))
}

func (r Row) fault(method string) sim.Fault {
	return sim.Fault{
		Method: method, Effect: sim.EffectStatus,
		Status: r.Status, Code: r.Code, Description: r.Description, RetryAfter: r.RetryAfter,
	}
}

// AcknowledgedIDs returns the ids of each step, and those of all messages in order, as the engine knows them after a
// success: an answer without them leaves the id of the only message.
func AcknowledgedIDs(t *testing.T, d autopost.Delivery, o autopost.Outcome) (steps map[string][]string, ids []string) {
	t.Helper()
	if o.Raw == nil {
		require.Len(t, d.RenderMeta.Steps, 1)
		ids = []string{o.ProviderMessageID}
		return map[string][]string{d.RenderMeta.Steps[0].Name: ids}, ids
	}
	var raw struct {
		IDs   []string            `json:"ids"`
		Steps map[string][]string `json:"steps"`
	}
	require.NoError(t, json.Unmarshal(o.Raw, &raw))
	return raw.Steps, raw.IDs
}

// RequireSound checks the rules for every outcome: either OK or Error, the sizes, valid JSON, and no
// secret.
func RequireSound(t *testing.T, o autopost.Outcome, secret string) {
	t.Helper()
	require.Equal(t, o.OK, o.Error == nil, "exactly one of OK and Error: %+v", o)
	if o.OK {
		require.NotEmpty(t, o.ProviderMessageID)
	} else {
		require.NotEmpty(t, o.Error.Code)
		require.NotEmpty(t, o.Error.Message)
		require.LessOrEqual(t, len(o.Error.Raw), 2<<10)
		require.Equal(t, !o.Error.Known, o.Error.Code == autopost.CodeUnknownOutcome, "known and code agree: %+v", o.Error)
	}
	require.LessOrEqual(t, len(o.Raw), 8<<10)
	text, err := json.Marshal(o)
	require.NoError(t, err, "raw parts are JSON")
	require.NotContains(t, string(text), secret)
	if len(secret) > 8 {
		require.NotContains(t, string(text), secret[len(secret)-8:], "nor its end")
	}
}

func requireClass(t *testing.T, o autopost.Outcome, want Class) {
	t.Helper()
	require.NotNil(t, o.Error, "sent: %+v", o)
	require.Equal(t, want, Class{o.Error.Category, o.Error.Scope, o.Error.Code, o.Error.RetryAfterMS}, "%s", o.Error)
	require.True(t, o.Error.Known, "%s", o.Error)
}

// requireLost checks the failure of a call that the platform may have executed.
func (b *bench) requireLost(t *testing.T, o autopost.Outcome) {
	t.Helper()
	if !b.Asks {
		requireUnknown(t, o)
		return
	}
	require.NotNil(t, o.Error, "sent: %+v", o)
	require.True(t, o.Error.Known, "%s", o.Error)
	require.Equal(t, autopost.Transient, o.Error.Category)
}

func requireUnknown(t *testing.T, o autopost.Outcome) {
	t.Helper()
	require.NotNil(t, o.Error, "sent: %+v", o)
	require.False(t, o.Error.Known, "%s", o.Error)
	require.Equal(t, autopost.CodeUnknownOutcome, o.Error.Code)
	require.Equal(t, autopost.Transient, o.Error.Category)
	require.Equal(t, autopost.ScopeDelivery, o.Error.Scope)
}
