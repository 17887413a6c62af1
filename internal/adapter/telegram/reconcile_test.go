package telegram_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/telegram"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/telegram"
)

const (
	channelID    = int64(-1001234567890)
	supergroupID = int64(-1009876543210)
	serviceID    = int64(-1005550000001)
	otherToken   = "7654321:BBanotherBotsToken"
)

// bench is a platform with a channel, a supergroup and a service chat.
type bench struct {
	core    *sim.Core
	server  *simulator.Server
	media   *adaptertest.MediaAccess
	adapter *telegram.Adapter
	chat    int64
}

func newBench(t *testing.T, chat int64) *bench {
	t.Helper()
	core := sim.NewCore(0)
	b := &bench{core: core, server: simulator.New(core, simulator.Options{Limits: &simulator.Limits{}}), media: adaptertest.NewMediaAccess(), chat: chat}
	require.NoError(t, b.server.AddBot(token))
	require.NoError(t, b.server.AddBot(otherToken))
	b.server.AddChat(simulator.Chat{ID: channelID})
	b.server.AddChat(simulator.Chat{ID: supergroupID, Type: "supergroup"})
	b.server.AddChat(simulator.Chat{ID: serviceID})
	host := httptest.NewServer(published.Inspect(t, b.server, published.Telegram(t)))
	t.Cleanup(host.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	b.adapter, err = telegram.New(telegram.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)
	b.adapter.ShortenPauses()
	return b
}

// post is a delivery of one step, in HTML, for a channel with a service chat.
func (b *bench) post(text string, kinds ...autopost.MediaKind) autopost.Delivery {
	step := autopost.Step{Name: "one", Text: text != ""}
	d := autopost.Delivery{TargetID: strconv.FormatInt(b.chat, 10), RenderedText: text, Settings: json.RawMessage(fmt.Sprintf(`{"service_chat_id": %d}`, serviceID))}
	for i, kind := range kinds {
		d.Payload.Media = append(d.Payload.Media, autopost.Media{Type: kind, BlobRef: b.media.Add(kind)})
		step.Items = append(step.Items, i)
	}
	d.RenderMeta = autopost.RenderMeta{ParseMode: "HTML", Steps: []autopost.Step{step}}
	return d
}

func (b *bench) send(t *testing.T, secret string, d autopost.Delivery) autopost.Outcome {
	t.Helper()
	o := b.adapter.Send(t.Context(), autopost.Call{Delivery: d, Secret: autopost.NewSecret(secret), Media: b.media})
	adaptertest.RequireSound(t, o, secret)
	return o
}

// posted sends a delivery and returns the id of the newest message.
func (b *bench) posted(t *testing.T, secret string, d autopost.Delivery) string {
	t.Helper()
	o := b.send(t, secret, d)
	require.True(t, o.OK, "%v", o.Error)
	return b.newest()
}

func (b *bench) newest() string {
	messages := b.server.Messages(b.chat)
	return strconv.FormatInt(messages[len(messages)-1].ID, 10)
}

// lost sends a delivery with an unknown outcome: the answer is lost, or the request if taken is false. It
// returns the time of the call.
func (b *bench) lost(t *testing.T, d autopost.Delivery, taken bool) time.Time {
	t.Helper()
	effect := sim.EffectReset
	if taken {
		effect = sim.EffectAcceptThenDrop
	}
	require.NoError(t, b.core.Faults.Add(sim.Fault{Effect: effect}))
	began := time.Now()
	o := b.send(t, token, d)
	require.NotNil(t, o.Error)
	require.False(t, o.Error.Known)
	b.core.Faults.Clear()
	return began
}

// ask reconciles a delivery whose last call began at the given time.
func (b *bench) ask(t *testing.T, d autopost.Delivery, since time.Time, known autopost.KnownPosts) (autopost.Verdict, []autopost.Acknowledged) {
	t.Helper()
	d.UnknownOutcomes, d.LastCallAt, d.KnownPosts = 1, &since, &known
	var emitted []autopost.Acknowledged
	v := b.adapter.Reconcile(t.Context(), autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(token), Media: b.media,
		Emit:  func(_ context.Context, a autopost.Acknowledged) error { emitted = append(emitted, a); return nil },
		Renew: func(context.Context) error { return nil },
	})
	require.Empty(t, b.server.Messages(serviceID), "all copies are deleted")
	return v, emitted
}

func (b *bench) calls(method string) int {
	return len(b.core.Log.Entries(sim.Filter{Method: method}))
}

// texts are texts that Telegram shows in another form than they were sent.
var texts = []string{
	"plain %d", "<b>1 &lt; 2</b> &amp; 3 &gt; %d &amp;amp; so on", `<a href="https://example.com/?a=b&amp;c=%d">see</a> <i>and</i> end`,
	"Привет, e\u0301t\u00e9 №%d", "👩‍👩‍👧 %d <tg-spoiler>漢字</tg-spoiler>", " two\n\nparagraphs  of %d ", `<blockquote>%d</blockquote>text<pre><code class="language-go">a\n b</code></pre>`,
}

// Each post with a lost answer is found with its id. Each post with a lost request is absent.
func TestReconcileFindsEveryLostAnswer(t *testing.T) {
	t.Parallel()
	for name, chat := range map[string]int64{"a channel": channelID, "a supergroup": supergroupID, "copies with file ids of their own": channelID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, chat)
			if name == "copies with file ids of their own" {
				b.server.RenameForwarded()
			}
			known := autopost.KnownPosts{Before: []string{b.posted(t, token, b.post("the first"))}}
			found, absent := 0, 0
			for n := range 18 * len(texts) {
				var kinds []autopost.MediaKind
				if n%4 == 0 {
					kinds = []autopost.MediaKind{[]autopost.MediaKind{autopost.MediaImage, autopost.MediaVideo, autopost.MediaAnimation, autopost.MediaAudio, autopost.MediaFile}[n/4%5]}
				}
				d := b.post(fmt.Sprintf(texts[n%len(texts)], n), kinds...)
				taken := n%9 != 5
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
				require.Equal(t, b.newest(), v.ProviderMessageID)
				known.Before = []string{v.ProviderMessageID}
			}
			require.Len(t, b.server.Messages(chat), found+1)
			t.Logf("%d lost answers found, %d lost requests absent", found, absent)
		})
	}
}

// An album is found with all its ids, or not at all.
func TestReconcileFindsWholeAlbums(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	b.adapter.RestorePauses()
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.post("the first"))}}
	d := b.post("An album", autopost.MediaImage, autopost.MediaVideo)
	since := b.lost(t, d, true)
	v, _ := b.ask(t, d, since, before)
	require.True(t, v.Found, "%v", v.Error)
	require.Equal(t, "2", v.ProviderMessageID)
	require.JSONEq(t, `{"ids":["2","3"],"steps":{"one":["2","3"]}}`, string(v.Raw))

	longer := b.post("An album", autopost.MediaImage, autopost.MediaVideo, autopost.MediaVideo)
	v, _ = b.ask(t, longer, since, before)
	require.True(t, v.Absent, "a part of an album is another post")
	entries := b.core.Log.Entries(sim.Filter{Method: "forwardMessage"})
	for i := 1; i < len(entries); i++ {
		if entries[i-1].Accepted && entries[i].Accepted && i != 2 { // the second search begins at 2
			require.GreaterOrEqual(t, entries[i].Start.Sub(entries[i-1].End), 950*time.Millisecond, "one message a second to the service chat")
		}
	}
}

func TestReconcileIgnoresEarlierIdenticalPosts(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	d := b.post("Photo of the day", autopost.MediaImage)
	first := b.posted(t, token, d)
	second := b.posted(t, token, d)
	since := b.lost(t, d, false)
	third := b.posted(t, token, d)
	v, _ := b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}, Others: []string{first, second, third}})
	require.True(t, v.Absent)
	v, _ = b.ask(t, d, since.Add(2*time.Minute), autopost.KnownPosts{Before: []string{first}})
	require.True(t, v.Absent, "too old")

	since = b.lost(t, d, true)
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}, Others: []string{third}})
	require.True(t, v.Found)
	require.Equal(t, "4", v.ProviderMessageID)
	d.RenderMeta.Steps = append([]autopost.Step{{Name: "zero", Text: true, Body: "0"}}, d.RenderMeta.Steps...)
	d.RenderMeta.Progress.Steps = map[string][]string{"zero": {"4"}}
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}, Others: []string{third}})
	require.True(t, v.Absent, "an acknowledged step of the same delivery is older")
}

// Without proof, Reconcile finds nothing.
func TestReconcileNeedsProof(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.post("the first"))}}
	bare := b.post("", autopost.MediaImage)
	since := b.lost(t, bare, true)
	v, _ := b.ask(t, bare, since, before)
	require.False(t, v.Found || v.Absent)
	require.Contains(t, v.Error.Message, "may be the post, or another's", "a picture without text and without a known id")

	before.Before = []string{b.newest()}
	before.OthersInDoubt = true
	pictured, twin := b.post("the text", autopost.MediaImage), b.post("the text", autopost.MediaImage)
	since = b.lost(t, twin, true)
	v, _ = b.ask(t, pictured, since, before)
	require.False(t, v.Found || v.Absent, "two posts with unknown outcomes look the same")

	id := b.server.Messages(channelID)[2].ID
	require.NoError(t, b.media.Keep(t.Context(), twin.Payload.Media[0].BlobRef, "photo", b.fileID(t, id), time.Time{}))
	v, _ = b.ask(t, twin, since, before)
	require.True(t, v.Found, "the file id is proof")
	for name, d := range map[string]autopost.Delivery{
		"no picture": b.post("the text"), "another kind": b.post("the text", autopost.MediaVideo), "more text": b.post("the text!", autopost.MediaImage),
	} {
		v, _ := b.ask(t, d, since, before)
		require.True(t, v.Absent, name)
	}
}

// fileID is the file id of a message in the chat.
func (b *bench) fileID(t *testing.T, id int64) string {
	t.Helper()
	for _, m := range b.server.Messages(b.chat) {
		if m.ID == id {
			return m.FileID
		}
	}
	return ""
}

func TestReconcileIgnoresOtherSendersOfAGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t, supergroupID)
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.post("the first"))}}
	d := b.post("Hello")
	since := b.lost(t, d, false)
	b.posted(t, otherToken, d)
	v, _ := b.ask(t, d, since, before)
	require.True(t, v.Absent)
}

func TestReconcileStopsInABusyChat(t *testing.T) {
	t.Parallel()
	b := newBench(t, supergroupID)
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.post("the first"))}}
	for n := range 25 {
		before.Others = append(before.Others, b.posted(t, token, b.post(fmt.Sprint("post ", n))))
	}
	d := b.post("found")
	since := b.lost(t, d, true)
	v, _ := b.ask(t, d, since, before)
	require.True(t, v.Found, "known posts of others are skipped")
	require.Equal(t, 1, b.calls("forwardMessage"))

	loud := b.post("protected")
	loud.Settings = json.RawMessage(`{"protect_content": true}`)
	before.Others = append(before.Others, v.ProviderMessageID)
	for range 20 {
		b.posted(t, otherToken, loud)
	}
	d = b.post("beyond")
	since = b.lost(t, d, true)
	v, _ = b.ask(t, d, since, before)
	require.Contains(t, v.Error.Message, "20 messages or more")
	require.Equal(t, 1+20, b.calls("forwardMessage"))
}

func TestSeriesContinuesAfterAFoundStep(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	d := b.post("One")
	first := b.posted(t, token, d)
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: "two", Text: true, Body: "Two"}, autopost.Step{Name: "three", Text: true, Body: "Three"})
	d.RenderMeta.Progress.Steps = map[string][]string{"one": {first}}
	since := b.lost(t, d, true)
	v, emitted := b.ask(t, d, since, autopost.KnownPosts{})
	require.Equal(t, autopost.Verdict{}, v, "Send makes the other steps")
	require.Equal(t, []autopost.Acknowledged{{Step: "two", IDs: []string{"2"}}}, emitted)
}

func TestReconcileReportsWhyItIsUndecided(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	d := b.post("a")
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, d)}}
	since := b.lost(t, d, true)
	undecided := func(d autopost.Delivery, known autopost.KnownPosts) *autopost.Error {
		t.Helper()
		v, _ := b.ask(t, d, since, known)
		require.False(t, v.Found || v.Absent)
		require.NotNil(t, v.Error)
		return v.Error
	}
	for code, f := range map[string]sim.Fault{
		"tg_429":          {Method: "forwardMessage", Effect: sim.EffectStatus, Status: 429, RetryAfter: 3},
		"unknown_outcome": {Method: "forwardMessage", Effect: sim.EffectReset},
		"tg_unauthorized": {Method: "getChat", Effect: sim.EffectStatus, Status: 401},
		"tg_no_rights":    {Method: "forwardMessage", Effect: sim.EffectStatus, Status: 400, Description: "Bad Request: need administrator rights in the channel chat"},
	} {
		require.NoError(t, b.core.Faults.Add(f))
		require.Equal(t, code, undecided(d, before).Code)
		b.core.Faults.Clear()
	}
	require.Contains(t, undecided(d, autopost.KnownPosts{}).Message, "no message of the chat is known")
	protected := d
	protected.Settings = json.RawMessage(fmt.Sprintf(`{"service_chat_id": %d, "protect_content": true}`, serviceID))
	require.Contains(t, undecided(protected, before).Message, "cannot be forwarded")
	itself := d
	itself.Settings = json.RawMessage(fmt.Sprintf(`{"service_chat_id": %d}`, channelID))
	require.Contains(t, undecided(itself, before).Message, "the channel itself")
	b.server.AddChat(simulator.Chat{ID: -77, Type: "group"})
	group := d
	group.TargetID = "-77"
	require.Contains(t, undecided(group, before).Message, "does not number its own messages")

	calls := b.calls("getChat") + b.calls("forwardMessage")
	without := d
	without.Settings = nil
	v, _ := b.ask(t, without, since, before)
	require.Equal(t, autopost.Verdict{}, v)
	require.Equal(t, calls, b.calls("getChat")+b.calls("forwardMessage"), "without a service chat, nothing is asked")

	// A message that cannot be forwarded is not the post. The search continues after it.
	loud := b.post("protected")
	loud.Settings = json.RawMessage(`{"protect_content": true}`)
	b.posted(t, token, loud)
	d = b.post("after it")
	since = b.lost(t, d, true)
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{"2"}})
	require.True(t, v.Found, "%v", v.Error)
}
