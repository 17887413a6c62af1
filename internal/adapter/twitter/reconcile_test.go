package twitter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/sim"
	simx "autopost/internal/sim/twitter"
)

// ask looks for a delivery whose last call began at the given time.
func (b *bench) ask(t *testing.T, d autopost.Delivery, since time.Time) (autopost.Verdict, []autopost.Acknowledged) {
	t.Helper()
	d.UnknownOutcomes, d.LastCallAt = 1, &since
	var emitted []autopost.Acknowledged
	v := newAdapter(t, b.url).Reconcile(t.Context(), autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(signed), Media: b.media,
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
	b.core.Faults.Clear()
	b.fault(t, sim.Fault{Method: create, Effect: effect})
	began := time.Now()
	o := send(t, b.url, b.media, d)
	require.NotNil(t, o.Error)
	require.False(t, o.Error.Known)
	b.core.Faults.Clear()
	return began
}

// texts are what posts say, in all ways in which X shows them otherwise than they were sent.
var texts = []string{
	"plain %d", "1 < 2 & 3 > %d &amp; so on", "see https://example.com/a?b=%d&c=1 and example.org, end", "http://example.com/%d", "example.com/%d and https://example.com/%[1]d",
	"Привет, e\u0301t\u00e9 №%d", "👩‍👩‍👧 %d 漢字", "two\n\nparagraphs  of %d ", "“%d” @nyx #tag $TAG",
}

// Of lost answers, all are found, with the very id, and what was never taken is absent.
func TestEveryLostAnswerIsResolvedRightly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	found, absent := 0, 0
	for n := range 20 * len(texts) {
		d := saying(fmt.Sprintf(texts[n%len(texts)], n))
		if n%4 == 0 {
			d = b.showing(d.RenderedText, autopost.MediaImage, autopost.MediaImage)
		}
		if n%8 == 0 {
			d.RenderedText = ""
			d.RenderMeta.Steps[0].Text = false
		}
		taken := n%3 != 0
		since := b.lost(t, d, taken)
		v, _ := b.ask(t, d, since)
		require.Nil(t, v.Error, "%q", d.RenderedText)
		require.Equal(t, taken, v.Found, "%q", d.RenderedText)
		require.Equal(t, !taken, v.Absent)
		if !taken {
			absent++
			continue
		}
		found++
		posts := b.server.Posts(account)
		require.Equal(t, posts[len(posts)-1].ID, v.ProviderMessageID)
		require.Contains(t, string(v.Raw), v.ProviderMessageID)
	}
	require.Len(t, b.server.Posts(account), found)
	t.Logf("%d lost answers found, %d lost requests absent, none wrong", found, absent)
}

func TestATimelineThatIsBehindSaysAbsentUntilItHasSettled(t *testing.T) {
	b := newBench(t)
	b.server.SetSettle(time.Hour)
	d := saying("late")
	since := b.lost(t, d, true)
	v, _ := b.ask(t, d, since)
	require.True(t, v.Absent)
	b.server.SetSettle(0)
	v, _ = b.ask(t, d, since)
	require.True(t, v.Found)
	require.Equal(t, time.Minute, newAdapter(t, b.url).SettleTime())
}

func TestWhatOnlyLooksAlikeIsNotFound(t *testing.T) {
	b := newBench(t)
	plain := saying("the text https://example.com/a")
	pictured := b.showing(plain.RenderedText, autopost.MediaImage)
	other := b.showing(plain.RenderedText, autopost.MediaImage)
	answer := saying(plain.RenderedText)
	answer.RenderMeta.Steps = []autopost.Step{{Name: "first", Text: true, Body: "x"}, {Name: "second", Text: true, ReplyTo: "first"}}
	answer.RenderMeta.Progress.Steps = map[string][]string{"first": {"1990000000000000001"}}
	since := b.lost(t, pictured, true)
	for name, d := range map[string]autopost.Delivery{
		"no picture": plain, "another picture": other, "an answer": answer,
		"another link": saying("the text https://example.com/b"), "more text": saying("the text https://example.com/a!"),
	} {
		for i, medium := range d.Payload.Media {
			if name == "another picture" {
				require.NoError(t, b.media.Keep(t.Context(), d.Payload.Media[i].BlobRef, "tweet_image", "1880028106020515840", time.Time{}), medium)
			}
		}
		v, _ := b.ask(t, d, since)
		require.True(t, v.Absent, name)
	}
	v, _ := b.ask(t, pictured, since.Add(2*time.Minute))
	require.True(t, v.Absent, "an earlier post is another one's")
	v, _ = b.ask(t, pictured, since)
	require.True(t, v.Found)
	known := pictured
	known.LastProviderMessageID = &v.ProviderMessageID
	v, _ = b.ask(t, known, since)
	require.True(t, v.Absent, "what is known to be another delivery's")
}

func TestAThreadGoesOnAfterThePartThatIsFound(t *testing.T) {
	b := newBench(t)
	d := saying("")
	d.RenderMeta.Steps = []autopost.Step{
		{Name: "text-1", Text: true, Body: "One"}, {Name: "text-2", Text: true, Body: "Two", ReplyTo: "text-1"}, {Name: "text-3", Text: true, Body: "Three", ReplyTo: "text-2"},
	}
	first := d
	first.RenderMeta.Steps = d.RenderMeta.Steps[:1]
	require.True(t, send(t, b.url, b.media, first).OK)
	id := b.server.Posts(account)[0].ID
	d.RenderMeta.Progress.Steps = map[string][]string{"text-1": {id}}
	since := b.lost(t, d, true)
	v, emitted := b.ask(t, d, since)
	require.Equal(t, autopost.Verdict{Used: autopost.Used{"owned_read": 2}}, v, "the rest is to be sent")
	second := b.server.Posts(account)[1].ID
	require.Equal(t, []autopost.Acknowledged{{Step: "text-2", IDs: []string{second}}}, emitted)

	d.RenderMeta.Progress.Steps = map[string][]string{"text-1": {id}, "text-2": {second}}
	since = b.lost(t, d, true)
	v, emitted = b.ask(t, d, since)
	require.True(t, v.Found)
	require.Empty(t, emitted, "the last is told by the verdict")
	require.Equal(t, id, v.ProviderMessageID, "the first of the whole")
	third := b.server.Posts(account)[2]
	require.Equal(t, second, third.ReplyTo)
	require.JSONEq(t, fmt.Sprintf(`{"ids":[%q,%q,%q],"steps":{"text-1":[%[1]q],"text-2":[%[2]q],"text-3":[%[3]q]}}`, id, second, third.ID), string(v.Raw))
}

func TestADuplicateAfterAnUnknownOutcomeIsAskedFor(t *testing.T) {
	b := newBench(t)
	d := saying("once")
	since := b.lost(t, d, true)
	posted := b.server.Posts(account)[0].ID

	o := send(t, b.url, b.media, d)
	require.Equal(t, "PERMANENT/delivery x_duplicate", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), "without one it is somebody else's")
	d.UnknownOutcomes, d.LastCallAt = 1, &since
	o = send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, posted, o.ProviderMessageID)

	b.server.SetSettle(time.Hour)
	o = send(t, b.url, b.media, d)
	require.Equal(t, "TRANSIENT/delivery x_duplicate", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), "the timeline is behind")
	require.EqualValues(t, 60_000, o.Error.RetryAfterMS)
	require.Len(t, b.server.Posts(account), 1)
}

func TestWhatCannotBeToldIsSaid(t *testing.T) {
	b := newBench(t)
	d := saying("a")
	since := b.lost(t, d, true)
	for name, f := range map[string]sim.Fault{
		"x_429":          {Effect: sim.EffectStatus, Status: 429},
		"x_5xx":          {Effect: sim.EffectGarbage},
		"x_call_failed":  {Effect: sim.EffectReset},
		"x_unauthorized": {Effect: sim.EffectStatus, Status: 401},
	} {
		b.core.Faults.Clear()
		b.fault(t, f)
		v, _ := b.ask(t, d, since)
		require.False(t, v.Found || v.Absent)
		require.Equal(t, name, v.Error.Code)
	}
	b.core.Faults.Clear()

	bare := b.showing("", autopost.MediaImage)
	bare.RenderMeta.Steps[0].Text = false
	v, _ := b.ask(t, bare, since)
	require.False(t, v.Found || v.Absent)
	require.Contains(t, v.Error.Message, "cannot be told from others")

	d.LastCallAt = nil
	v = newAdapter(t, b.url).Reconcile(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(signed), Media: b.media})
	require.Contains(t, v.Error.Message, "does not say when")
	d.LastCallAt = &since
	d.RenderMeta.Progress.Steps = map[string][]string{"text": {"1"}}
	v = newAdapter(t, b.url).Reconcile(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(signed), Media: b.media})
	require.Contains(t, v.Error.Message, "no step that is not acknowledged")
}

func TestAnAccountByItsNameIsAskedWhoItIs(t *testing.T) {
	b := newBench(t)
	d := saying("a")
	d.TargetID = "@nyx"
	since := b.lost(t, d, true)
	v, _ := b.ask(t, d, since)
	require.True(t, v.Found)
	require.Equal(t, 1, b.calls("GET /2/users/me"))
}

func TestALookGoesThroughAllPages(t *testing.T) {
	b := newBench(t)
	d := saying("the first of very many")
	since := b.lost(t, d, true)
	for n := range 230 {
		require.True(t, send(t, b.url, b.media, saying(fmt.Sprint("post ", n))).OK)
	}
	v, _ := b.ask(t, d, since)
	require.True(t, v.Found)
	require.Equal(t, 3, b.calls("GET /2/users/{id}/tweets"))
	charged := 0
	for _, c := range b.server.Charges() {
		if strings.HasPrefix(c.For, "post read") {
			require.EqualValues(t, simx.PriceOwnRead, c.MicroDollars)
			charged++
		}
	}
	require.Equal(t, 231, charged, "a read is paid for by the post")
}
