package twitter_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/sim"
	simx "autopost/internal/sim/twitter"
)

// reconcile runs Reconcile for a delivery whose last call began at the given time.
func (b *bench) reconcile(t *testing.T, d autopost.Delivery, since time.Time) (autopost.Verdict, []autopost.Acknowledged) {
	t.Helper()
	d.UnknownOutcomes, d.LastCallAt = 1, &since
	var emitted []autopost.Acknowledged
	a := b.adapter
	if a == nil {
		a = newAdapter(t, b.url)
	}
	v := a.Reconcile(t.Context(), autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(signed), Media: b.media,
		Emit: func(_ context.Context, a autopost.Acknowledged) error { emitted = append(emitted, a); return nil },
	})
	return v, emitted
}

// lost sends a delivery and loses the answer, or the request if taken is false.
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

// texts are texts that X shows in another form than it received them.
var texts = []string{
	"plain %d", "1 < 2 & 3 > %d &amp; so on", "see https://example.com/a?b=%d&c=1 and example.org, end", "http://example.com/%d", "example.com/%d and https://example.com/%[1]d",
	"Привет, e\u0301t\u00e9 №%d", "👩‍👩‍👧 %d 漢字", "two\n\nparagraphs  of %d ", "“%d” @nyx #tag $TAG",
}

func TestReconcileFindsEveryPostWhoseAnswerWasLost(t *testing.T) {
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
		v, _ := b.reconcile(t, d, since)
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

func TestAPostIsAbsentUntilTheTimelineShowsIt(t *testing.T) {
	b := newBench(t)
	b.server.SetSettle(time.Hour)
	d := saying("late")
	since := b.lost(t, d, true)
	v, _ := b.reconcile(t, d, since)
	require.True(t, v.Absent)
	b.server.SetSettle(0)
	v, _ = b.reconcile(t, d, since)
	require.True(t, v.Found)
	require.Equal(t, time.Minute, newAdapter(t, b.url).SettleTime())
}

func TestReconcileIgnoresSimilarPosts(t *testing.T) {
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
		v, _ := b.reconcile(t, d, since)
		require.True(t, v.Absent, name)
	}
	v, _ := b.reconcile(t, pictured, since.Add(2*time.Minute))
	require.True(t, v.Absent, "an earlier post belongs to another delivery")
	v, _ = b.reconcile(t, pictured, since)
	require.True(t, v.Found)
	known := pictured
	known.LastProviderMessageID = &v.ProviderMessageID
	v, _ = b.reconcile(t, known, since)
	require.True(t, v.Absent, "the post is known to be of another delivery")
}

func TestAThreadContinuesAfterTheFoundPart(t *testing.T) {
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
	v, emitted := b.reconcile(t, d, since)
	require.Equal(t, autopost.Verdict{Used: autopost.Used{"owned_read": 2}}, v, "Send sends the rest")
	second := b.server.Posts(account)[1].ID
	require.Equal(t, []autopost.Acknowledged{{Step: "text-2", IDs: []string{second}}}, emitted)

	d.RenderMeta.Progress.Steps = map[string][]string{"text-1": {id}, "text-2": {second}}
	since = b.lost(t, d, true)
	v, emitted = b.reconcile(t, d, since)
	require.True(t, v.Found)
	require.Empty(t, emitted, "the verdict has the last part")
	require.Equal(t, id, v.ProviderMessageID, "the id of the first part")
	third := b.server.Posts(account)[2]
	require.Equal(t, second, third.ReplyTo)
	require.JSONEq(t, fmt.Sprintf(`{"ids":[%q,%q,%q],"steps":{"text-1":[%[1]q],"text-2":[%[2]q],"text-3":[%[3]q]}}`, id, second, third.ID), string(v.Raw))
}

func TestADuplicateAfterAnUnknownOutcomeIsResolved(t *testing.T) {
	b := newBench(t)
	d := saying("once")
	since := b.lost(t, d, true)
	posted := b.server.Posts(account)[0].ID

	o := send(t, b.url, b.media, d)
	require.Equal(t, "PERMANENT/delivery x_duplicate", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), "without an unknown outcome it is another post")
	d.UnknownOutcomes, d.LastCallAt = 1, &since
	o = send(t, b.url, b.media, d)
	require.True(t, o.OK, "%v", o.Error)
	require.Equal(t, posted, o.ProviderMessageID)

	b.server.SetSettle(time.Hour)
	o = send(t, b.url, b.media, d)
	require.Equal(t, "TRANSIENT/delivery x_duplicate", fmt.Sprintf("%s/%s %s", o.Error.Category, o.Error.Scope, o.Error.Code), "the timeline lags")
	require.EqualValues(t, 60_000, o.Error.RetryAfterMS)
	require.Len(t, b.server.Posts(account), 1)
}

func TestReconcileReportsWhyItIsUnclear(t *testing.T) {
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
		v, _ := b.reconcile(t, d, since)
		require.False(t, v.Found || v.Absent)
		require.Equal(t, name, v.Error.Code)
	}
	b.core.Faults.Clear()

	bare := b.showing("", autopost.MediaImage)
	bare.RenderMeta.Steps[0].Text = false
	v, _ := b.reconcile(t, bare, since)
	require.False(t, v.Found || v.Absent)
	require.Contains(t, v.Error.Message, "cannot be identified")

	d.LastCallAt = nil
	v = newAdapter(t, b.url).Reconcile(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(signed), Media: b.media})
	require.Contains(t, v.Error.Message, "has no time of its last call")
	d.LastCallAt = &since
	d.RenderMeta.Progress.Steps = map[string][]string{"text": {"1"}}
	v = newAdapter(t, b.url).Reconcile(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(signed), Media: b.media})
	require.Contains(t, v.Error.Message, "no step that is not acknowledged")
}

func TestANamedAccountIsResolvedToItsID(t *testing.T) {
	b := newBench(t)
	d := saying("a")
	d.TargetID = "@nyx"
	since := b.lost(t, d, true)
	v, _ := b.reconcile(t, d, since)
	require.True(t, v.Found)
	require.Equal(t, 1, b.calls("GET /2/users/me"))
}

func TestASearchReadsAllPages(t *testing.T) {
	b := newBench(t)
	d := saying("the first of very many")
	since := b.lost(t, d, true)
	for n := range 230 {
		require.True(t, send(t, b.url, b.media, saying(fmt.Sprint("post ", n))).OK)
	}
	v, _ := b.reconcile(t, d, since)
	require.True(t, v.Found)
	require.Equal(t, 3, b.calls("GET /2/users/{id}/tweets"))
	charged := 0
	for _, c := range b.server.Charges() {
		if strings.HasPrefix(c.For, "post read") {
			require.EqualValues(t, simx.PriceOwnRead, c.MicroDollars)
			charged++
		}
	}
	require.Equal(t, 231, charged, "each read post is billed")
}

// calledWith reconciles a delivery and returns the parameters for fields of its requests, in order.
func calledWith(t *testing.T, b *bench, d autopost.Delivery, since time.Time) (autopost.Verdict, []string) {
	t.Helper()
	b.core.Log.Reset()
	b.names = nil
	v, _ := b.reconcile(t, d, since)
	return v, b.names
}

func TestASearchUsesTheVocabularyThatXUnderstands(t *testing.T) {
	for name, c := range map[string]struct {
		newNames, oldNames simx.Treatment
		first, then        []string // names of fields in the requests of the first search, and of a later one
	}{
		"both":                 {simx.Understood, simx.Understood, []string{"post.fields"}, []string{"post.fields"}},
		"the new, old refused": {simx.Understood, simx.Refused, []string{"post.fields"}, []string{"post.fields"}},
		"the old, new refused": {simx.Refused, simx.Understood, []string{"post.fields", "tweet.fields"}, []string{"tweet.fields"}},
		"the old, new ignored": {simx.Ignored, simx.Understood, []string{"post.fields", "tweet.fields"}, []string{"tweet.fields"}},
		"the new, old ignored": {simx.Understood, simx.Ignored, []string{"post.fields"}, []string{"post.fields"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchWith(t, published.XWithOldFields(t))
			b.server.SetVocabularies(c.newNames, c.oldNames)
			b.adapter = newAdapter(t, b.url)
			d := saying("see https://example.com/a and https://example.com/b")
			since := b.lost(t, d, true)
			v, names := calledWith(t, b, d, since)
			require.True(t, v.Found, "%v", v.Error)
			require.Equal(t, c.first, names)
			v, names = calledWith(t, b, saying("another"), since)
			require.True(t, v.Absent, "%v", v.Error)
			require.Equal(t, c.then, names, "the vocabulary is remembered")

			// X swaps the vocabularies.
			b.server.SetVocabularies(c.oldNames, c.newNames)
			v, _ = calledWith(t, b, d, since)
			require.True(t, v.Found, "%v", v.Error)
		})
	}
}

func TestAnAnswerWithoutTimesNeverSaysAbsent(t *testing.T) {
	b := newBenchWith(t, published.XWithOldFields(t))
	b.server.SetVocabularies(simx.Ignored, simx.Ignored)
	d := saying("see https://example.com/a")
	since := b.lost(t, d, true)
	for _, wanted := range []autopost.Delivery{d, saying("another")} {
		v, _ := b.reconcile(t, wanted, since)
		require.False(t, v.Absent)
		require.False(t, v.Found)
		require.Equal(t, "x_unclear", v.Error.Code)
		require.Equal(t, 2, v.Used["owned_read"], "X bills both searches")
	}
	b.server.SetVocabularies(simx.Refused, simx.Refused)
	v, _ := b.reconcile(t, d, since)
	require.Equal(t, autopost.Verdict{Error: v.Error}, v)
	require.Equal(t, "x_unclear", v.Error.Code)
}

func TestALongPostIsFoundByItsNote(t *testing.T) {
	for _, old := range []bool{false, true} {
		b := newBenchWith(t, published.XWithOldFields(t))
		if old {
			b.server.SetVocabularies(simx.Ignored, simx.Understood)
		}
		require.NoError(t, b.server.AddUser(simx.User{ID: account, Username: "nyx", MaxLength: 4000}))
		long := strings.Repeat("слово ", 100) + "https://example.com/a & example.org, end"
		for _, d := range []autopost.Delivery{saying(long), b.showing(long+".", autopost.MediaImage)} {
			d.Settings = []byte(`{"max_weighted_length":4000}`)
			since := b.lost(t, d, true)
			v, _ := b.reconcile(t, d, since)
			require.True(t, v.Found, "%v", v.Error)
			d.RenderedText += "!"
			v, _ = b.reconcile(t, d, since)
			require.True(t, v.Absent, "an equal beginning is not enough")
		}
	}
}

func TestAReplyIsFoundByItsThreadWhereXNamesNoParent(t *testing.T) {
	for name, c := range map[string]struct {
		post  string
		found bool
	}{
		"parent":           {`"conversation_id":"7","referenced_posts":[{"type":"replied_to","id":"8"}]`, true},
		"parent, old name": {`"conversation_id":"7","referenced_tweets":[{"type":"replied_to","id":"8"}]`, true},
		"another parent":   {`"conversation_id":"7","referenced_posts":[{"type":"replied_to","id":"9"}]`, false},
		"thread alone":     {`"conversation_id":"7"`, true},
		"another thread":   {`"conversation_id":"6"`, false},
		"no reply":         {`"conversation_id":"100"`, false},
		"a quote":          {`"conversation_id":"7","referenced_posts":[{"type":"quoted","id":"8"}]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now().UTC()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{"data":[{"id":"100","text":"third","created_at":%q,%s}],"meta":{"result_count":1}}`, now.Format(time.RFC3339), c.post)
			}))
			t.Cleanup(server.Close)
			d := saying("")
			d.RenderMeta.Steps = []autopost.Step{
				{Name: "a", Text: true, Body: "first"}, {Name: "b", Text: true, Body: "second", ReplyTo: "a"}, {Name: "c", Text: true, Body: "third", ReplyTo: "b"},
			}
			d.RenderMeta.Progress.Steps = map[string][]string{"a": {"7"}, "b": {"8"}}
			d.UnknownOutcomes, d.LastCallAt = 1, &now
			v := newAdapter(t, server.URL).Reconcile(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(signed)})
			require.Equal(t, c.found, v.Found, "%v", v.Error)
			require.Equal(t, !c.found, v.Absent)
		})
	}
}
