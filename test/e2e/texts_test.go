package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A text over the limit arrives in parts, in order; under a picture it begins as the caption and goes on in a reply.
func TestLongTextsArriveInParts(t *testing.T) {
	t.Parallel()
	h, telegramChat, maxChat := newsroom(t)
	h.Exec(`update autopost.channels set settings = '{"long_text": "split", "utm": {"utm_source": "us"}}'`)
	d := h.Serve()
	text := strings.TrimSpace(strings.Repeat("A sentence of eight words, said many times. ", 200)) + " See https://example.org/more"
	h.Push(d, "secret-cms", harness.Post("text", text))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)
	for _, chat := range []string{telegramChat, maxChat} {
		var parts []string
		for _, e := range h.Accepted(sim.Filter{Chat: chat}) {
			require.True(t, strings.HasSuffix(e.Text, ".") || strings.HasSuffix(e.Text, "utm_source=us"), "a part ends with a sentence")
			parts = append(parts, e.Text)
		}
		require.Len(t, parts, 3)
		require.Equal(t, text+"?utm_source=us", strings.Join(parts, " "))
	}

	h.Exec(`update autopost.channels set settings = '{"long_text": "caption_reply"}' where channel_id = 'on-telegram'`)
	h.Push(d, "secret-cms", harness.Post("text", "Again. "+text[:2000], "media", pictures(h, 1)))
	h.UntilTrue(`select count(*) = 4 from autopost.deliveries where status = 'sent'`)
	sends := h.Accepted(sim.Filter{Chat: telegramChat})[3:]
	require.Len(t, sends, 2)
	require.Equal(t, []string{"sendPhoto", "sendMessage"}, []string{sends[0].Method, sends[1].Method})
	require.Equal(t, sends[0].MessageIDs[0], sends[1].ReplyTo)
	require.Equal(t, "Again. "+strings.TrimSpace(text[:2000]), sends[0].Text+" "+sends[1].Text)
	h.Verified()
}

// A template is filled for each platform in its dialect; a channel of a platform without an adapter fails alone.
func TestTemplatesAndAPlatformWithoutAdapter(t *testing.T) {
	t.Parallel()
	h, telegramChat, maxChat := newsroom(t)
	h.Exec(`insert into autopost.platforms select (jsonb_populate_record(p, '{"platform": "pigeon"}')).* from autopost.platforms p where p.platform = 'telegram'`)
	h.Channel("news", harness.Channel{ID: "by-pigeon", Platform: "pigeon"})
	h.Exec(`select autopost.put_template('news', 'digest', '*', '{"body": "<b>{title}</b>: {summary?}", "parse_mode": "HTML"}', 'ann', 'test')`)
	d := h.Serve()
	missing := h.Push(d, "secret-cms", `{"template": {"name": "digest", "vars": {"summary": "x"}}}`)
	require.Equal(t, 422, missing.Status)
	require.Contains(t, fmt.Sprint(missing.Body), "template.vars.title")
	h.Push(d, "secret-cms", `{"template": {"name": "digest", "vars": {"title": "1 < 2", "summary": "<i>no markup</i>"}}}`)
	h.Drained("news")
	for _, chat := range []string{telegramChat, maxChat} {
		posts := h.Accepted(sim.Filter{Chat: chat})
		require.Len(t, posts, 1)
		require.Equal(t, "1 < 2: <i>no markup</i>", posts[0].Text)
		require.Len(t, posts[0].Marks, 1)
	}
	require.Equal(t, []string{"by-pigeon failed_permanent digest@1", "on-max sent digest@1", "on-telegram sent digest@1"}, pgtest.Column[string](h.DB,
		`select channel_id || ' ' || status || ' ' || template_version from autopost.deliveries order by 1`))
	require.Equal(t, "no_adapter", pgtest.Value[string](h.DB, `select last_error ->> 'code' from autopost.deliveries where channel_id = 'by-pigeon'`))
	h.Verified()
}
