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

const otherToken = "another-canary-of-somebody-else"

// alone says that no other delivery of the channel is in doubt.
var alone = autopost.KnownPosts{}

// ask looks for a delivery whose last call began at the given time.
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

// lost sends a delivery whose answer, or, where taken is false, whose request is lost.
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

// saying is a delivery of one message in HTML.
func (b *bench) saying(text string, kinds ...autopost.MediaKind) autopost.Delivery {
	d := b.delivery(kinds...)
	d.RenderedText = text
	d.RenderMeta.Steps[0].Text = text != ""
	return d
}

// texts are what posts say, in the ways in which MAX shows them otherwise than they were sent.
var texts = []string{
	"plain %d", "<b>1 &lt; 2</b> &amp; 3 &gt; %d &amp;amp; so on", `<a href="https://example.com/?a=b&amp;c=%d">see</a> <i>and</i> end`,
	"Привет, e\u0301t\u00e9 №%d", "👩‍👩‍👧 %d 漢字", "two\n\nparagraphs  of %d ", "<h1>%d</h1>text<pre>a\n b</pre>",
}

// Of lost answers, all are found, with the very id, and what was never taken is absent.
func TestEveryLostAnswerIsResolvedRightly(t *testing.T) {
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
				d := b.saying(fmt.Sprintf(texts[n%len(texts)], n), kinds...)
				if n%5 == 0 {
					d.RenderMeta.Buttons = [][]autopost.Button{{{Text: "Open", URL: "https://example.org"}}}
				}
				if n%16 == 0 && !showing.OtherTokens {
					d.RenderedText, d.RenderMeta.Steps[0].Text = "", false // by its tokens alone
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
			t.Logf("%d lost answers found, %d lost requests absent, none wrong", found, absent)
		})
	}
}

// posted sends a delivery and returns its message's id.
func (b *bench) posted(t *testing.T, d autopost.Delivery) string {
	t.Helper()
	o := send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	return o.ProviderMessageID
}

func TestAnIdenticalPostOfBeforeNeverCounts(t *testing.T) {
	b := newBench(t)
	d := b.saying("Photo of the day", autopost.MediaImage)
	first := b.posted(t, d)
	second := b.posted(t, b.saying("Photo of the day", autopost.MediaImage))
	since := b.lost(t, d, false)
	third := b.posted(t, b.saying("Photo of the day", autopost.MediaImage))
	for name, known := range map[string]autopost.KnownPosts{
		"each is known":        {Others: []string{first, second, third}},
		"the newest of before": {Before: []string{second}, Others: []string{third}},
	} {
		v, _ := b.ask(t, d, since, known)
		require.True(t, v.Absent, name)
	}
	d.LastProviderMessageID = &third
	v, _ := b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}})
	require.True(t, v.Absent, "the last that is known to stand there")
	d.RenderMeta.Progress = autopost.SeriesProgress{Steps: map[string][]string{"earlier": {third}}}
	d.LastProviderMessageID = nil
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}})
	require.True(t, v.Absent, "a step of its own that was acknowledged")
	d.RenderMeta.Progress = autopost.SeriesProgress{}
	v, _ = b.ask(t, d, since.Add(2*time.Minute), alone)
	require.True(t, v.Absent, "too old by the clock")
}

func TestWhatOnlyLooksAlikeIsNotFound(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.server.AddBot(otherToken))
	pictured := b.saying("the text", autopost.MediaImage)
	since := b.lost(t, pictured, true)
	for name, d := range map[string]autopost.Delivery{
		"no picture": b.saying("the text"), "another kind": b.saying("the text", autopost.MediaVideo), "two pictures": b.saying("the text", autopost.MediaImage, autopost.MediaImage),
		"more text": b.saying("the text!", autopost.MediaImage), "no text": b.saying("", autopost.MediaVideo),
	} {
		v, _ := b.ask(t, d, since, alone)
		require.True(t, v.Absent, name)
	}
	v, _ := b.ask(t, pictured, since, alone)
	require.True(t, v.Found)

	b.server.Reset()
	require.True(t, sendWith(t, b.url, otherToken, b.media, b.saying("mine")).OK)
	v, _ = b.ask(t, b.saying("mine"), since, alone)
	require.True(t, v.Absent, "somebody else's")
}

// Without a certain sign nothing is found: not by looks alone, nor while another post of the channel is in doubt.
func TestOnDoubtItIsNotFound(t *testing.T) {
	b := newBench(t)
	b.server.SetShowing(simmax.Showing{OtherTokens: true})
	bare, pictured := b.saying("", autopost.MediaImage), b.saying("the text", autopost.MediaImage)
	since := b.lost(t, bare, true)
	b.lost(t, pictured, true)
	twin := b.saying("the text", autopost.MediaImage)
	for name, c := range map[string]struct {
		d     autopost.Delivery
		known autopost.KnownPosts
	}{
		"a picture without text":                 {bare, alone},
		"a text and picture of one of two":       {pictured, autopost.KnownPosts{OthersInDoubt: true}},
		"another picture, when two are in doubt": {twin, autopost.KnownPosts{OthersInDoubt: true}},
	} {
		v, _ := b.ask(t, c.d, since, c.known)
		require.False(t, v.Found || v.Absent, name)
		require.Contains(t, v.Error.Message, "may be the post, or another's", name)
	}
	b.server.SetShowing(simmax.Showing{})
	v, _ := b.ask(t, pictured, since, autopost.KnownPosts{OthersInDoubt: true})
	require.True(t, v.Found, "by its token it is certain")
	v, _ = b.ask(t, twin, since, autopost.KnownPosts{OthersInDoubt: true})
	require.False(t, v.Found)
}

func TestASeriesGoesOnAfterTheStepThatIsFound(t *testing.T) {
	b := newBench(t)
	d := b.saying("One", autopost.MediaImage)
	first := b.posted(t, d)
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: "two", Text: true, Body: "Two"}, autopost.Step{Name: "three", Text: true, Body: "Three"})
	d.RenderMeta.Progress.Steps = map[string][]string{"media-1": {first}}
	since := b.lost(t, d, true)
	v, emitted := b.ask(t, d, since, alone)
	require.Equal(t, autopost.Verdict{}, v, "the rest is to be sent")
	second := b.server.Messages(chatID)[1].Mid
	require.Equal(t, []autopost.Acknowledged{{Step: "two", IDs: []string{second}}}, emitted)
	d.RenderMeta.Progress.Steps["two"] = []string{second}
	since = b.lost(t, d, true)
	v, emitted = b.ask(t, d, since, alone)
	require.True(t, v.Found)
	require.Empty(t, emitted)
	require.Equal(t, first, v.ProviderMessageID, "the first of the whole")
}

func TestWhatCannotBeToldIsSaid(t *testing.T) {
	b := newBench(t)
	d := b.saying("a")
	since := b.lost(t, d, true)
	for code, f := range map[string]sim.Fault{
		"max_429":          {Method: "GET /messages", Effect: sim.EffectStatus, Status: 429},
		"unknown_outcome":  {Method: "GET /messages", Effect: sim.EffectReset},
		"max_unauthorized": {Method: "GET /me", Effect: sim.EffectStatus, Status: 401},
	} {
		require.NoError(t, b.core.Faults.Add(f))
		v, _ := b.ask(t, d, since, alone)
		require.False(t, v.Found || v.Absent, code)
		require.Equal(t, code, v.Error.Code)
		b.core.Faults.Clear()
	}
	b.server.SetAccess(chatID, simmax.AccessWriteOnly)
	v, _ := b.ask(t, d, since, alone)
	require.False(t, v.Found || v.Absent)
	require.Equal(t, "max_access_denied", v.Error.Code, "without read_all_messages there is nothing to see")

	b.server.SetAccess(chatID, simmax.AccessAdmin)
	missing := b.saying("never taken")
	for n := range 100 {
		b.posted(t, b.saying(fmt.Sprint("post ", n)))
	}
	v, _ = b.ask(t, missing, since, alone)
	require.Contains(t, v.Error.Message, "over 100 messages", "what is older cannot be looked at")
	missing.RenderMeta.Progress.Steps = map[string][]string{"media-1": {"mid"}}
	v, _ = b.ask(t, missing, since, alone)
	require.Contains(t, v.Error.Message, "no step in doubt")
}
