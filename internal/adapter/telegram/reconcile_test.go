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
	"autopost/internal/adapter/telegram"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/telegram"
)

const (
	channelID    = int64(-1001234567890)
	supergroupID = int64(-1009876543210)
	serviceID    = int64(-1005550000001)
	otherToken   = "7654321:BBsomebodyElses"
)

// bench is a platform with a channel, a supergroup and a service chat.
type bench struct {
	core    *sim.Core
	server  *simulator.Server
	media   *adaptertest.Materials
	adapter *telegram.Adapter
	chat    int64
}

func newBench(t *testing.T, chat int64) *bench {
	t.Helper()
	core := sim.NewCore(0)
	b := &bench{core: core, server: simulator.New(core, simulator.Options{Limits: &simulator.Limits{}}), media: adaptertest.NewMaterials(), chat: chat}
	require.NoError(t, b.server.AddBot(token))
	require.NoError(t, b.server.AddBot(otherToken))
	b.server.AddChat(simulator.Chat{ID: channelID})
	b.server.AddChat(simulator.Chat{ID: supergroupID, Type: "supergroup"})
	b.server.AddChat(simulator.Chat{ID: serviceID})
	host := httptest.NewServer(b.server)
	t.Cleanup(host.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	b.adapter, err = telegram.New(telegram.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)
	return b
}

// saying is a delivery of one step, in HTML, of a channel with the service chat.
func (b *bench) saying(text string, kinds ...autopost.MediaKind) autopost.Delivery {
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

// posted sends a delivery and returns the id of its last message.
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

// lost sends a delivery whose answer, or, where taken is false, whose request is lost.
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

// ask looks for a delivery whose last call began at the given time.
func (b *bench) ask(t *testing.T, d autopost.Delivery, since time.Time, known autopost.KnownPosts) (autopost.Verdict, []autopost.Acknowledged) {
	t.Helper()
	d.UnknownOutcomes, d.LastCallAt, d.KnownPosts = 1, &since, &known
	var emitted []autopost.Acknowledged
	v := b.adapter.Reconcile(t.Context(), autopost.Call{
		Delivery: d, Secret: autopost.NewSecret(token), Media: b.media,
		Emit:  func(_ context.Context, a autopost.Acknowledged) error { emitted = append(emitted, a); return nil },
		Renew: func(context.Context) error { return nil },
	})
	require.Empty(t, b.server.Messages(serviceID), "nothing stays in the service chat")
	return v, emitted
}

func (b *bench) calls(method string) int {
	return len(b.core.Log.Entries(sim.Filter{Method: method}))
}

// texts are what posts say, in the ways in which Telegram shows them otherwise than they were sent.
var texts = []string{
	"plain %d", "<b>1 &lt; 2</b> &amp; 3 &gt; %d &amp;amp; so on", `<a href="https://example.com/?a=b&amp;c=%d">see</a> <i>and</i> end`,
	"Привет, e\u0301t\u00e9 №%d", "👩‍👩‍👧 %d <tg-spoiler>漢字</tg-spoiler>", " two\n\nparagraphs  of %d ", `<blockquote>%d</blockquote>text<pre><code class="language-go">a\n b</code></pre>`,
}

// Of lost answers, all are found, with the very id, and what was never taken is absent.
func TestEveryLostAnswerIsResolvedRightly(t *testing.T) {
	t.Parallel()
	for name, chat := range map[string]int64{"a channel": channelID, "a supergroup": supergroupID, "copies with file ids of their own": channelID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, chat)
			if name == "copies with file ids of their own" {
				b.server.RenameForwarded()
			}
			known := autopost.KnownPosts{Before: []string{b.posted(t, token, b.saying("the first"))}}
			found, absent := 0, 0
			for n := range 18 * len(texts) {
				var kinds []autopost.MediaKind
				if n%4 == 0 {
					kinds = []autopost.MediaKind{[]autopost.MediaKind{autopost.MediaImage, autopost.MediaVideo, autopost.MediaAnimation, autopost.MediaAudio, autopost.MediaFile}[n/4%5]}
				}
				d := b.saying(fmt.Sprintf(texts[n%len(texts)], n), kinds...)
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
			t.Logf("%d lost answers found, %d lost requests absent, none wrong", found, absent)
		})
	}
}

// An album is found whole, with all its ids, or not at all.
func TestAnAlbumIsOneUnit(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.saying("the first"))}}
	d := b.saying("An album", autopost.MediaImage, autopost.MediaVideo)
	since := b.lost(t, d, true)
	v, _ := b.ask(t, d, since, before)
	require.True(t, v.Found, "%v", v.Error)
	require.Equal(t, "2", v.ProviderMessageID)
	require.JSONEq(t, `{"ids":["2","3"],"steps":{"one":["2","3"]}}`, string(v.Raw))

	longer := b.saying("An album", autopost.MediaImage, autopost.MediaVideo, autopost.MediaVideo)
	v, _ = b.ask(t, longer, since, before)
	require.True(t, v.Absent, "a part of it is not it")
	entries := b.core.Log.Entries(sim.Filter{Method: "forwardMessage"})
	for i := 1; i < len(entries); i++ {
		if entries[i-1].Accepted && entries[i].Accepted && i != 2 { // the second look begins at 2
			require.GreaterOrEqual(t, entries[i].Start.Sub(entries[i-1].End), 950*time.Millisecond, "a message a second to the service chat")
		}
	}
}

func TestAnIdenticalPostOfBeforeNeverCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	d := b.saying("Photo of the day", autopost.MediaImage)
	first := b.posted(t, token, d)
	second := b.posted(t, token, d)
	since := b.lost(t, d, false)
	third := b.posted(t, token, d)
	v, _ := b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}, Others: []string{first, second, third}})
	require.True(t, v.Absent)
	v, _ = b.ask(t, d, since.Add(2*time.Minute), autopost.KnownPosts{Before: []string{first}})
	require.True(t, v.Absent, "too old by the clock")

	since = b.lost(t, d, true)
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}, Others: []string{third}})
	require.True(t, v.Found)
	require.Equal(t, "4", v.ProviderMessageID)
	d.RenderMeta.Steps = append([]autopost.Step{{Name: "zero", Text: true, Body: "0"}}, d.RenderMeta.Steps...)
	d.RenderMeta.Progress.Steps = map[string][]string{"zero": {"4"}}
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{second}, Others: []string{third}})
	require.True(t, v.Absent, "a step of its own that was acknowledged is older")
}

// Without a certain sign nothing is found.
func TestOnDoubtItIsNotFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.saying("the first"))}}
	bare := b.saying("", autopost.MediaImage)
	since := b.lost(t, bare, true)
	v, _ := b.ask(t, bare, since, before)
	require.False(t, v.Found || v.Absent)
	require.Contains(t, v.Error.Message, "may be the post, or another's", "a picture alone, of which no id is known")

	before.Before = []string{b.newest()}
	before.OthersInDoubt = true
	pictured, twin := b.saying("the text", autopost.MediaImage), b.saying("the text", autopost.MediaImage)
	since = b.lost(t, twin, true)
	v, _ = b.ask(t, pictured, since, before)
	require.False(t, v.Found || v.Absent, "two are in doubt that look the same")

	id := b.server.Messages(channelID)[2].ID
	require.NoError(t, b.media.Keep(t.Context(), twin.Payload.Media[0].BlobRef, "photo", b.fileID(t, id), time.Time{}))
	v, _ = b.ask(t, twin, since, before)
	require.True(t, v.Found, "by its file it is certain")
	for name, d := range map[string]autopost.Delivery{
		"no picture": b.saying("the text"), "another kind": b.saying("the text", autopost.MediaVideo), "more text": b.saying("the text!", autopost.MediaImage),
	} {
		v, _ := b.ask(t, d, since, before)
		require.True(t, v.Absent, name)
	}
}

// fileID is that of a photo that stands in the channel.
func (b *bench) fileID(t *testing.T, id int64) string {
	t.Helper()
	for _, m := range b.server.Messages(b.chat) {
		if m.ID == id {
			return m.FileID
		}
	}
	return ""
}

func TestSomebodyElsesMessageOfAGroupIsNotOurs(t *testing.T) {
	t.Parallel()
	b := newBench(t, supergroupID)
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.saying("the first"))}}
	d := b.saying("Hello")
	since := b.lost(t, d, false)
	b.posted(t, otherToken, d)
	v, _ := b.ask(t, d, since, before)
	require.True(t, v.Absent)
}

func TestABusyChatIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, supergroupID)
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, b.saying("the first"))}}
	for n := range 25 {
		before.Others = append(before.Others, b.posted(t, token, b.saying(fmt.Sprint("post ", n))))
	}
	d := b.saying("found")
	since := b.lost(t, d, true)
	v, _ := b.ask(t, d, since, before)
	require.True(t, v.Found, "what is known to be another's costs no look")
	require.Equal(t, 1, b.calls("forwardMessage"))

	loud := b.saying("protected")
	loud.Settings = json.RawMessage(`{"protect_content": true}`)
	before.Others = append(before.Others, v.ProviderMessageID)
	for range 20 {
		b.posted(t, otherToken, loud)
	}
	d = b.saying("beyond")
	since = b.lost(t, d, true)
	v, _ = b.ask(t, d, since, before)
	require.Contains(t, v.Error.Message, "20 messages or more")
	require.Equal(t, 1+20, b.calls("forwardMessage"))
}

func TestASeriesGoesOnAfterTheStepThatIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	d := b.saying("One")
	first := b.posted(t, token, d)
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: "two", Text: true, Body: "Two"}, autopost.Step{Name: "three", Text: true, Body: "Three"})
	d.RenderMeta.Progress.Steps = map[string][]string{"one": {first}}
	since := b.lost(t, d, true)
	v, emitted := b.ask(t, d, since, autopost.KnownPosts{})
	require.Equal(t, autopost.Verdict{}, v, "the rest is to be sent")
	require.Equal(t, []autopost.Acknowledged{{Step: "two", IDs: []string{"2"}}}, emitted)
}

func TestWhatCannotBeToldIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, channelID)
	d := b.saying("a")
	before := autopost.KnownPosts{Before: []string{b.posted(t, token, d)}}
	since := b.lost(t, d, true)
	untold := func(d autopost.Delivery, known autopost.KnownPosts) *autopost.Error {
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
		require.Equal(t, code, untold(d, before).Code)
		b.core.Faults.Clear()
	}
	require.Contains(t, untold(d, autopost.KnownPosts{}).Message, "no message of the chat is known")
	protected := d
	protected.Settings = json.RawMessage(fmt.Sprintf(`{"service_chat_id": %d, "protect_content": true}`, serviceID))
	require.Contains(t, untold(protected, before).Message, "cannot be forwarded")
	itself := d
	itself.Settings = json.RawMessage(fmt.Sprintf(`{"service_chat_id": %d}`, channelID))
	require.Contains(t, untold(itself, before).Message, "the channel itself")
	b.server.AddChat(simulator.Chat{ID: -77, Type: "group"})
	group := d
	group.TargetID = "-77"
	require.Contains(t, untold(group, before).Message, "no ids of its own")

	calls := b.calls("getChat") + b.calls("forwardMessage")
	without := d
	without.Settings = nil
	v, _ := b.ask(t, without, since, before)
	require.Equal(t, autopost.Verdict{}, v)
	require.Equal(t, calls, b.calls("getChat")+b.calls("forwardMessage"), "without a service chat nobody is asked")

	// What cannot be forwarded is not ours: the look goes on behind it.
	loud := b.saying("protected")
	loud.Settings = json.RawMessage(`{"protect_content": true}`)
	b.posted(t, token, loud)
	d = b.saying("behind it")
	since = b.lost(t, d, true)
	v, _ = b.ask(t, d, since, autopost.KnownPosts{Before: []string{"2"}})
	require.True(t, v.Found, "%v", v.Error)
}
