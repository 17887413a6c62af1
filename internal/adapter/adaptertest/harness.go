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
	"autopost/internal/sim"
)

// Harness binds the suite to a platform.
type Harness struct {
	Secret, Target string
	// World makes a fresh platform that knows the secret and the target and has no rate limits.
	World func(t *testing.T) (*sim.Core, http.Handler)
	// New makes the adapter under test.
	New func(baseURL string, client adapter.Doer) (autopost.Adapter, error)
	// Refresher renews the credentials of the platform, whose token endpoint is at the
	// address; nil when nobody does.
	Refresher func(baseURL string, client adapter.Doer) autopost.Refresher
	// Schema checks every request against the platform's published schema; nil when there is none.
	Schema Schema
	// Plain makes the plainest delivery where a text alone is none, with its content in
	// the origin; the cases about messages are left out then. Nil: a text.
	Plain func(m *Materials) autopost.Delivery
	// Asks says that the adapter asks what the platform has before it does anything again,
	// so that a lost answer is a failure that may pass.
	Asks bool

	// TextMethod is that of the plainest delivery. TextMethod, AlbumMethod and MediaMethods name the posting calls as the log does.
	TextMethod, AlbumMethod string
	MediaMethods            map[autopost.MediaKind]string
	// FileKinds are the kinds under which ids of uploads are kept, of all media that the platform takes.
	FileKinds map[autopost.MediaKind]string
	// NoMarkup is a platform without markup and buttons.
	NoMarkup bool
	// Album are media that go into one post; two pictures and a video when empty.
	Album []autopost.MediaKind
	// BadSettings are refused; a disable_notification that is no boolean when empty.
	BadSettings string
	// Longest is the longest text that is taken, in the unit in which the platform
	// measures; "" leaves the case out.
	Longest string
	// Lookup says that the adapter is a Reconciler that needs nothing besides, and the
	// world shows at once what it has.
	Lookup bool
	// NoSettings is an adapter that reads no settings of a channel, NoReplies a platform
	// on which a post cannot answer another.
	NoSettings, NoReplies bool
	// Expired is the platform's answer to an id of a medium that it does not take.
	Expired Row
	// Definite5xx is a server error in the platform's own form; where every server error
	// leaves the outcome unknown, any other refusal that may pass.
	Definite5xx Row
	// Rows is the table of error classes for posting a text.
	Rows []Row

	// Acts are what may be done to a post that was sent, each with its call as the log names
	// it; ActRows what the platform says no to it with. A row without a class is a success.
	Acts    map[autopost.ActKind]string
	ActRows map[autopost.ActKind][]Row

	// NoUploads is a platform that takes media along with the post only: no ids are kept.
	NoUploads bool
	// HostOfItsOwn says that each target is a host of its own: a failure of the host
	// concerns the channel, where else it concerns the platform.
	HostOfItsOwn bool
	// AnyBody says that a status of 2xx is an acknowledgement, whatever comes with it.
	AnyBody bool
	// Read fills in what the receiver's log leaves to the reader of a post; nil when it says all.
	Read func(e *sim.Entry)
}

// Row is an answer of the platform and what the adapter must make of it.
type Row struct {
	Status int
	// Code is the platform's error key where it has one.
	Code        string
	Description string
	// RetryAfter is in seconds.
	RetryAfter int
	Want       Class
}

// Class is the part of an error that decides what becomes of the delivery.
type Class struct {
	Category     autopost.Category
	Scope        autopost.Scope
	Code         string
	RetryAfterMS int64
}

// bench is a platform, an adapter that speaks to it, and the media of the delivery.
type bench struct {
	Harness
	core *sim.Core
	// handler is the platform, watched.
	handler   http.Handler
	adapter   autopost.Adapter
	refresher autopost.Refresher
	media     *Materials
	emitted   []autopost.Acknowledged
}

// makeBench leaves it to the caller where the platform listens.
func makeBench(t *testing.T, h Harness) *bench {
	t.Helper()
	core, handler := h.World(t)
	return &bench{Harness: h, core: core, handler: Inspect(t, handler, h.Schema), media: NewMaterials()}
}

func newBench(t *testing.T, h Harness) *bench {
	t.Helper()
	b := makeBench(t, h)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	b.connect(t, server.URL)
	return b
}

// connect points the adapter at an address.
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

// delivery is a post to the target, with markup where the platform has it.
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

// said is a text in the platform's dialect, given with markup.
func (b *bench) said(text string) string {
	if b.NoMarkup {
		return html.UnescapeString(markup.ReplaceAllString(text, ""))
	}
	return text
}

// kinds are the media that the platform takes.
func (h Harness) kinds() []autopost.MediaKind {
	return slices.Sorted(maps.Keys(h.MediaMethods))
}

// notPicture is a kind of medium that the platform takes and that is no picture.
func (h Harness) notPicture() autopost.MediaKind {
	if _, ok := h.MediaMethods[autopost.MediaFile]; ok {
		return autopost.MediaFile
	}
	return autopost.MediaVideo
}

// plain is the plainest delivery that the platform takes.
func (b *bench) plain() autopost.Delivery {
	if b.Plain == nil {
		return b.delivery(textStep)
	}
	d := b.Plain(b.media)
	d.DeliveryID, d.TargetID = "d-1", b.Target
	return d
}

// another is a plain delivery that no platform takes for a repetition of the first.
func (b *bench) another() autopost.Delivery {
	d := b.plain()
	d.DeliveryID, d.RenderedText = "d-2", d.RenderedText+", and the next"
	return d
}

// withMedia gives the delivery media of the kinds, with content in the origin.
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

// hosts is the scope of a failure of the host.
func (h Harness) hosts() autopost.Scope {
	if h.HostOfItsOwn {
		return autopost.ScopeChannel
	}
	return autopost.ScopePlatform
}

// call records nothing of what it is told.
func (b *bench) call(d autopost.Delivery) autopost.Call {
	return autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(b.Secret), Media: b.media,
		Emit:  func(context.Context, autopost.Acknowledged) error { return nil },
		Renew: func(context.Context) error { return nil },
	}
}

// posts are the entries of the calls that make messages.
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

// RequireSound checks what holds for every outcome: exactly one verdict, sizes,
// valid JSON, and no trace of the secret.
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
		require.NotContains(t, string(text), secret[len(secret)-8:], "not even its end")
	}
}

func requireClass(t *testing.T, o autopost.Outcome, want Class) {
	t.Helper()
	require.NotNil(t, o.Error, "sent: %+v", o)
	require.Equal(t, want, Class{o.Error.Category, o.Error.Scope, o.Error.Code, o.Error.RetryAfterMS}, "%s", o.Error)
	require.True(t, o.Error.Known, "%s", o.Error)
}

// requireLost checks a failure after which the platform may have what it was sent.
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
