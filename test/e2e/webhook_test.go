package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/feeds"
	"autopost/internal/sim/webhook"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
)

// A receiver gets each post signed, with its small media, and once by its id though
// the first answer was lost; one that is gone stops alone.
func TestPostsToWebhooks(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	for _, name := range []string{"crm", "gone"} {
		require.NoError(t, h.World.Webhook.AddEndpoint(name, firstKey))
	}
	ok(t, h, "credential", "bind", "receivers", "--platform", "webhook", "--secret-ref", "env:TEST_FIRST_KEY", because)
	refused := h.Run(nil, "channel", "add", "crm", "--platform", "webhook", "--target-id", "ftp://example.com/", "--auth-ref", "receivers", because)
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Stderr, "must be a target of webhook")
	ok(t, h, "channel", "add", "crm", "--platform", "webhook", "--target-id", h.WorldURL+"/webhook/crm", "--auth-ref", "receivers",
		"--settings", `{"inline_media_bytes": 1048576}`, because)
	ok(t, h, "channel", "add", "gone", "--platform", "webhook", "--target-id", h.WorldURL+"/webhook/gone?status=410", "--auth-ref", "receivers", because)
	ok(t, h, "channel", "add", "elsewhere", "--platform", "webhook", "--target-id", "http://10.0.0.7/hook", "--auth-ref", "receivers", because)

	h.Fault(sim.Fault{Platform: webhook.Platform, Chat: "crm", To: 2, Effect: sim.EffectAcceptThenDrop})
	d := h.Serve("TEST_FIRST_KEY=" + firstKey)
	h.Push(d, "secret-cms", harness.Post("text", "**News** & more", "parse_mode", "Markdown", "media", picture(h, "photo-1.png")))
	h.UntilTrue(`select status = 'sent' from autopost.deliveries where channel_id = 'crm'`)

	events := h.World.Webhook.Events("crm")
	require.Len(t, events, 1)
	require.Equal(t, 3, events[0].Copies, "a second lost answer ends nothing: the same id and the same bytes, for no note says otherwise")
	require.Equal(t, []string{"webhook-id was seen before"}, h.Sends(sim.Filter{Chat: "crm"})[1].Notes)
	require.Equal(t, pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries where channel_id = 'crm'`), events[0].ID)
	require.Equal(t, events[0].ID, pgtest.Value[string](h.DB, `select provider_message_id from autopost.deliveries where channel_id = 'crm'`))
	require.False(t, events[0].Timestamp.After(events[0].Received), "it was signed before it arrived")
	var post struct {
		ID, Type, Channel, Text, HTML string
		Created                       time.Time
		Media                         []struct{ Content []byte }
	}
	require.NoError(t, json.Unmarshal(events[0].Body, &post))
	require.Equal(t, []string{"post", "crm", "News & more", "<b>News</b> &amp; more"}, []string{post.Type, post.Channel, post.Text, post.HTML})
	require.WithinDuration(t, time.Now(), post.Created, wait.Bound)
	_, content, _ := feeds.Generate("photo-1.png")
	require.Equal(t, content, post.Media[0].Content)

	h.UntilTrue(`select count(*) = 2 from autopost.channels where channel_id in ('gone', 'elsewhere') and paused_until > now()`)
	require.Equal(t, []string{"target_refused", "webhook_gone"}, pgtest.Column[string](h.DB, `
		select last_error ->> 'code' from autopost.deliveries where status = 'failed_permanent' order by channel_id`))
	require.False(t, pgtest.Value[bool](h.DB, `select paused_until is not null from autopost.channels where channel_id = 'crm'`))
	require.False(t, strings.Contains(d.Log(), firstKey))
	h.Verified()
}
