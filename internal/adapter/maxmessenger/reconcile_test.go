package maxmessenger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simmax "autopost/internal/sim/maxmessenger"
)

const otherToken = "another-canary-of-another-bot"

// noOthers: no other delivery of the channel has an unknown outcome.
var noOthers = autopost.KnownPosts{}

// ask reconciles a delivery whose last call began at the given time.
func (b *bench) ask(t *testing.T, d autopost.Delivery, since time.Time, known autopost.KnownPosts) (autopost.Verdict, []autopost.Acknowledged) {
	t.Helper()
	d.UnknownOutcomes, d.LastCallAt, d.KnownPosts = 1, &since, &known
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	adapter, err := maxmessenger.New(maxmessenger.Config{BaseURL: b.url, Client: client})
	require.NoError(t, err)
	var emitted []autopost.Acknowledged
	v := adapter.Reconcile(t.Context(), autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(token), Media: b.media,
		Emit: func(_ context.Context, a autopost.Acknowledged) error { emitted = append(emitted, a); return nil },
	})
	return v, emitted
}

// lost sends a delivery with an unknown outcome: the answer is lost, or the request if taken is false. It
// returns the time of the call.
func (b *bench) lost(t *testing.T, d autopost.Delivery, taken bool) time.Time {
	t.Helper()
	effect := sim.EffectReset
	if taken {
		effect = sim.EffectAcceptThenDrop
	}
	require.NoError(t, b.core.Faults.Add(sim.Fault{Method: "POST /messages", Effect: effect}))
	began := time.Now()
	o := send(t, b.url, b.media, d)
	require.NotNil(t, o.Error)
	require.False(t, o.Error.Known)
	b.core.Faults.Clear()
	return began
}

// post is a delivery of one message in HTML.
func (b *bench) post(text string, kinds ...autopost.MediaKind) autopost.Delivery {
	d := b.delivery(kinds...)
	d.RenderedText = text
	d.RenderMeta.Steps[0].Text = text != ""
	return d
}

// texts are texts that MAX shows in another form than they were sent.
var texts = []string{
	"plain %d", "<b>1 &lt; 2</b> &amp; 3 &gt; %d &amp;amp; so on", `<a href="https://example.com/?a=b&amp;c=%d">see</a> <i>and</i> end`,
	"Привет, e\u0301t\u00e9 №%d", "👩‍👩‍👧 %d 漢字", "two\n\nparagraphs  of %d ", "<h1>%d</h1>text<pre>a\n b</pre>",
}

// Each post with a lost answer is found with its id. Each post with a lost request is absent.
func TestReconcileFindsEveryLostAnswer(t *testing.T) {
	t.Parallel()
	for name, showing := range map[string]simmax.Showing{
		"as it was sent": {}, "without a sender": {NoSender: true}, "by other tokens": {OtherTokens: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.server.SetShowing(showing)
			found, absent := 0, 0
			var known autopost.KnownPosts
			for n := range 24 * len(texts) {
				var kinds []autopost.MediaKind
				switch {
				case n%8 == 0:
					kinds = []autopost.MediaKind{autopost.MediaImage, autopost.MediaVideo}
				case n%4 == 0:
					kinds = []autopost.MediaKind{autopost.MediaFile}
				}
				d := b.post(fmt.Sprintf(texts[n%len(texts)], n), kinds...)
				if n%5 == 0 {
					d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org"}}}
				}
				if n%16 == 0 && !showing.OtherTokens {
					d.RenderedText, d.RenderMeta.Steps[0].Text = "", false // with its tokens only
				}
				taken := n%3 != 0
				since := b.lost(t, d, taken)
				v, _ := b.ask(t, d, since, known)
				require.Nil(t, v.Error, "%q", d.RenderedText)
				require.Equal(t, taken, v.Found, "%q", d.RenderedText)
				require.Equal(t, !taken, v.Absent)
				if !taken {
					absent++
					continue
				}
				found++
				posts := b.server.Messages(chatID)
				require.Equal(t, posts[len(posts)-1].Mid, v.ProviderMessageID)
				require.Contains(t, string(v.Raw), v.ProviderMessageID)
				known.Before = []string{v.ProviderMessageID}
				known.Others = append(known.Others, v.ProviderMessageID)
			}
			require.Len(t, b.server.Messages(chatID), found)
			t.Logf("%d lost answers found, %d lost requests absent", found, absent)
		})
	}
}

// posted sends a delivery and returns the id of its message.
func (b *bench) posted(t *testing.T, d autopost.Delivery) string {
	t.Helper()
	o := send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	return o.ProviderMessageID
}

func TestReconcileIgnoresEarlierIdenticalPosts(t *testing.T) {
	b := newBench(t)
	d := b.post("Photo of the day", autopost.MediaImage)
	first := b.posted(t, d)
	second := b.posted(t, b.post("Photo of the day", autopost.MediaImage))
	since := b.lost(t, d, false)
	third := b.posted(t, b.post("Photo of the day", autopost.MediaImage))
	for name, known := range map[string]autopost.KnownPosts{
		"all posts are known":              {Others: []string{first, second, third}},
		"the newest earlier post is known": {Before: []string{second}, Others: []string{third}},
	} {
		v, _ := b.ask(t, d, since, known)
		require.True(t, v.Absent, name)
	}
	d.LastProviderMessageID = &third
	v, _ := b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}})
	require.True(t, v.Absent, "the last known post of the channel")
	d.RenderMeta.Progress = autopost.SeriesProgress{Steps: map[string][]string{"earlier": {third}}}
	d.LastProviderMessageID = nil
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}})
	require.True(t, v.Absent, "an acknowledged step of the same delivery")
	d.RenderMeta.Progress = autopost.SeriesProgress{}
	v, _ = b.ask(t, d, since.Add(2*time.Minute), noOthers)
	require.True(t, v.Absent, "too old")
}

func TestReconcileIgnoresSimilarPosts(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.server.AddBot(otherToken))
	pictured := b.post("the text", autopost.MediaImage)
	since := b.lost(t, pictured, true)
	for name, d := range map[string]autopost.Delivery{
		"no picture": b.post("the text"), "another kind": b.post("the text", autopost.MediaVideo), "two pictures": b.post("the text", autopost.MediaImage, autopost.MediaImage),
		"more text": b.post("the text!", autopost.MediaImage), "no text": b.post("", autopost.MediaVideo),
	} {
		v, _ := b.ask(t, d, since, noOthers)
		require.True(t, v.Absent, name)
	}
	v, _ := b.ask(t, pictured, since, noOthers)
	require.True(t, v.Found)

	b.server.Reset()
	require.True(t, sendWith(t, b.url, otherToken, b.media, b.post("mine")).OK)
	v, _ = b.ask(t, b.post("mine"), since, noOthers)
	require.True(t, v.Absent, "another bot's")
}

// Reconcile finds nothing without proof: a picture without text proves nothing, a text only if no other
// post of the channel has an unknown outcome.
func TestReconcileNeedsProof(t *testing.T) {
	b := newBench(t)
	b.server.SetShowing(simmax.Showing{OtherTokens: true})
	bare, pictured := b.post("", autopost.MediaImage), b.post("the text", autopost.MediaImage)
	since := b.lost(t, bare, true)
	b.lost(t, pictured, true)
	twin := b.post("the text", autopost.MediaImage)
	for name, c := range map[string]struct {
		d     autopost.Delivery
		known autopost.KnownPosts
	}{
		"a picture without text":                          {bare, noOthers},
		"a text and picture of one of two":                {pictured, autopost.KnownPosts{OthersInDoubt: true}},
		"another picture, when two have unknown outcomes": {twin, autopost.KnownPosts{OthersInDoubt: true}},
	} {
		v, _ := b.ask(t, c.d, since, c.known)
		require.False(t, v.Found || v.Absent, name)
		require.Contains(t, v.Error.Message, "may be the post, or another's", name)
	}
	b.server.SetShowing(simmax.Showing{})
	v, _ := b.ask(t, pictured, since, autopost.KnownPosts{OthersInDoubt: true})
	require.True(t, v.Found, "the token is proof")
	v, _ = b.ask(t, twin, since, autopost.KnownPosts{OthersInDoubt: true})
	require.False(t, v.Found)
}

func TestSeriesContinuesAfterAFoundStep(t *testing.T) {
	b := newBench(t)
	d := b.post("One", autopost.MediaImage)
	first := b.posted(t, d)
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: "two", Text: true, Body: "Two"}, autopost.Step{Name: "three", Text: true, Body: "Three"})
	d.RenderMeta.Progress.Steps = map[string][]string{"media-1": {first}}
	since := b.lost(t, d, true)
	v, emitted := b.ask(t, d, since, noOthers)
	require.Equal(t, autopost.Verdict{}, v, "Send makes the other steps")
	second := b.server.Messages(chatID)[1].Mid
	require.Equal(t, []autopost.Acknowledged{{Step: "two", IDs: []string{second}}}, emitted)
	d.RenderMeta.Progress.Steps["two"] = []string{second}
	since = b.lost(t, d, true)
	v, emitted = b.ask(t, d, since, noOthers)
	require.True(t, v.Found)
	require.Empty(t, emitted)
	require.Equal(t, first, v.ProviderMessageID, "the first message of the post")
}

func TestReconcileReadsSeveralPages(t *testing.T) {
	b := newBench(t)
	d := b.post("the first")
	since := b.lost(t, d, true)
	first := b.server.Messages(chatID)[0].Mid
	for n := range 250 {
		b.posted(t, b.post(fmt.Sprint("post ", n)))
	}
	v, _ := b.ask(t, d, since, noOthers)
	require.True(t, v.Found)
	require.Equal(t, first, v.ProviderMessageID)
	v, _ = b.ask(t, b.post("never taken"), since, noOthers)
	require.True(t, v.Absent)
	require.Len(t, b.core.Log.Entries(sim.Filter{Method: "GET /messages"}), 6)
}

func TestReconcileReportsWhyItIsUndecided(t *testing.T) {
	b := newBench(t)
	d := b.post("a")
	since := b.lost(t, d, true)
	for code, f := range map[string]sim.Fault{
		"max_429":          {Method: "GET /messages", Effect: sim.EffectStatus, Status: 429},
		"unknown_outcome":  {Method: "GET /messages", Effect: sim.EffectReset},
		"max_unauthorized": {Method: "GET /me", Effect: sim.EffectStatus, Status: 401},
	} {
		require.NoError(t, b.core.Faults.Add(f))
		v, _ := b.ask(t, d, since, noOthers)
		require.False(t, v.Found || v.Absent, code)
		require.Equal(t, code, v.Error.Code)
		b.core.Faults.Clear()
	}
	b.server.SetAccess(chatID, simmax.AccessWriteOnly)
	v, _ := b.ask(t, d, since, noOthers)
	require.False(t, v.Found || v.Absent)
	require.Equal(t, "max_access_denied", v.Error.Code, "without read_all_messages the bot cannot read the channel")

	b.server.SetAccess(chatID, simmax.AccessAdmin)
	missing := b.post("never taken")
	for n := range 500 {
		b.posted(t, b.post(fmt.Sprint("post ", n)))
	}
	v, _ = b.ask(t, missing, since, noOthers)
	require.Contains(t, v.Error.Message, "messages since the call", "more pages are not read")
	missing.RenderMeta.Progress.Steps = map[string][]string{"media-1": {"mid"}}
	v, _ = b.ask(t, missing, since, noOthers)
	require.Contains(t, v.Error.Message, "no step with an unknown outcome")
}
