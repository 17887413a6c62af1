package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/smtptest"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
)

const (
	// each is how often the monitor looks in these tests.
	each = "MONITOR_INTERVAL_SECONDS=1"
)

// watched returns an installation with a workspace, a channel and an operator chat that gets the
// workspace's alerts. Nothing else is wrong.
func watched(t *testing.T, fields ...string) (h *harness.Harness, channel, duty string) {
	t.Helper()
	h = harness.New(t)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	channel = h.Channel("news", harness.Channel{ID: "on-telegram", Platform: harness.Telegram})
	h.World.Telegram.AddChat(telegram.Chat{ID: -1_000_000_009_999, Title: "On duty"})
	duty = "-1000000009999"
	h.Exec(`update autopost.settings set value = '2' where key = 'alert_calm_seconds'`)
	ok(t, h, append([]string{"alert", "target", "add", "ops", "--kind", "telegram", "--address", duty, "--auth-ref", "telegram", because}, fields...)...)
	return h, channel, duty
}

// kill makes a post that its channel refuses for good, and counts it as dead.
func kill(t *testing.T, h *harness.Harness, d *harness.Daemon, channel string) {
	t.Helper()
	h.World.Telegram.SetAccess(numeric(t, channel), telegram.AccessKicked)
	h.Push(d, "secret-cms", harness.Post("text", "Nobody gets this"))
	h.UntilTrue(`select status = 'failed_permanent' from autopost.deliveries limit 1`)
	h.Exec(`alter table autopost.deliveries disable trigger user`)
	h.Exec(`update autopost.deliveries set status = 'dead' where status = 'failed_permanent'`)
	h.Exec(`alter table autopost.deliveries enable trigger user`)
}

// notices waits for n messages and returns all messages of the chat.
func (o opened) notices(n int) []sim.Entry {
	o.h.Until("the notices are there", func() bool { return len(o.h.Sends(sim.Filter{Chat: o.chat})) >= n })
	return o.h.Sends(sim.Filter{Chat: o.chat})
}

// opened is an operator chat.
type opened struct {
	h    *harness.Harness
	chat string
}

// A channel's dead deliveries are one message with what to do, and one when they are
// gone, though two monitors look; a mail and a webhook say the same.
func TestAlertIsReportedOnceAndItsEndToo(t *testing.T) {
	t.Parallel()
	h, channel, duty := watched(t, "--kinds", "dead")
	mail := smtptest.New(t, smtptest.Plain)
	require.NoError(t, h.World.Webhook.AddEndpoint("alerts", firstKey))
	ok(t, h, "credential", "bind", "signing", "--platform", "webhook", "--secret-ref", "env:TEST_FIRST_KEY", because)
	ok(t, h, "alert", "target", "add", "post", "--kind", "email", "--address", "ops@example.com", "--kinds", "dead", because)
	ok(t, h, "alert", "target", "add", "hook", "--kind", "webhook", "--address", h.WorldURL+"/webhook/alerts", "--auth-ref", "signing", "--kinds", "dead", because)
	extra := []string{each, "TEST_FIRST_KEY=" + firstKey, "AUTOPOST_SMTP_URL=smtp://" + mail.Addr + "?tls=off", "AUTOPOST_SMTP_FROM=autopost@example.com"}
	d, second := h.Serve(extra...), h.Serve(extra...)
	h.Until("the address got its code", func() bool { return len(mail.Letters()) == 1 })
	code := regexp.MustCompile(`--code ([0-9a-f]+)`).FindStringSubmatch(mail.Letters()[0].Body)
	ok(t, h, "alert", "target", "confirm", "post", "--code", code[1], because)
	kill(t, h, d, channel)
	chat := opened{h, duty}
	first := chat.notices(1)[0].Text
	require.Contains(t, first, "NEW error dead: 1 dead delivery: tg_")
	require.Contains(t, first, "To do: see why: autopost deliveries list --status dead --workspace news")
	h.Until("the mail is there", func() bool { return len(mail.Letters()) == 2 })
	require.Contains(t, mail.Letters()[1].Header.Get("Subject"), "NEW error dead")
	h.Until("the webhook was called", func() bool { return len(h.World.Webhook.Events("alerts")) == 1 })
	var body struct {
		Type   string
		Alerts []struct {
			Kind, Remedy string
			Change       string `json:"told"`
		}
	}
	require.NoError(t, json.Unmarshal(h.World.Webhook.Events("alerts")[0].Body, &body))
	require.Equal(t, "alerts", body.Type)
	require.Equal(t, []string{"dead", "raised"}, []string{body.Alerts[0].Kind, body.Alerts[0].Change})
	require.Contains(t, ok(t, h, "alert", "list", "--open"), "1 dead delivery")
	doctor := h.Run(nil, "doctor")
	require.Contains(t, doctor.Stdout, "alert news/dead")

	h.Exec(`alter table autopost.deliveries disable trigger user`)
	h.Exec(`update autopost.deliveries set status = 'sent', sent_at = now(), provider_message_id = '1' where status = 'dead'`)
	h.Exec(`alter table autopost.deliveries enable trigger user`)
	require.Contains(t, chat.notices(2)[1].Text, "OVER error dead")
	h.UntilTrue(`select count(*) = 3 from autopost.alert_notices where resolved`)
	require.Len(t, chat.notices(2), 2, "two monitors send one notice")
	require.Len(t, mail.Letters(), 3)
	require.Equal(t, 1, h.World.Webhook.Events("alerts")[0].Copies)
	require.NotContains(t, d.Log()+second.Log(), firstKey)
	h.UntilTrue(`select count(distinct duty) >= 10 from autopost.monitor_duties where failures = 0`)
}

// A chat that cannot be reached is tried again, and the other targets get an alert.
func TestTargetThatCannotBeReached(t *testing.T) {
	t.Parallel()
	h, channel, duty := watched(t, "--kinds", "dead")
	second := opened{h, h.Channel("news", harness.Channel{ID: "second", Platform: harness.MAX, Filter: `{"include_any": ["none"]}`})}
	ok(t, h, "alert", "target", "add", "others", "--kind", "max", "--address", second.chat, "--auth-ref", "max", "--kinds", "alert_target_failing", because)
	h.World.Telegram.SetAccess(numeric(t, duty), telegram.AccessKicked)
	d := h.Serve(each)
	kill(t, h, d, channel)
	require.Contains(t, second.notices(1)[0].Text, "NEW error alert_target_failing: target:ops")
	require.Contains(t, ok(t, h, "alert", "target", "list"), "bot was kicked")
	h.World.Telegram.SetAccess(numeric(t, duty), telegram.AccessAdmin)
	h.Exec(`update autopost.alert_targets set next_try_at = now() where target_id = 'ops'`)
	h.Until("the notice is there", func() bool { return len(h.Accepted(sim.Filter{Chat: duty})) == 1 })
	require.Contains(t, h.Accepted(sim.Filter{Chat: duty})[0].Text, "NEW error dead")
	require.Contains(t, second.notices(2)[1].Text, "OVER error alert_target_failing")
}

// A daemon that is killed after the chat has the message and before that is recorded:
// the message comes once more, and no third time.
func TestKilledBetweenTheMessageAndItsRecord(t *testing.T) {
	t.Parallel()
	h, channel, duty := watched(t, "--kinds", "dead")
	h.Exec(`update autopost.settings set value = '2' where key = 'alert_lease_seconds'`)
	h.Fault(sim.Fault{Platform: harness.Telegram, Chat: duty, Effect: sim.EffectSlow, DelayMS: 60_000})
	chat := opened{h, duty}
	for round := range 2 {
		d := h.Serve(each)
		if round == 0 {
			kill(t, h, d, channel)
		}
		chat.notices(round + 1)
		d.Kill()
	}
	h.Serve(each)
	h.UntilTrue(`select count(*) = 1 from autopost.alert_messages where status = 'unknown'`)
	h.UntilTrue(`select exists (select 1 from autopost.monitor_duties where duty = 'watch' and reported_at > (select max(ended_at) + interval '3 seconds' from autopost.alert_messages))`)
	require.Len(t, chat.notices(2), 2)
	require.Equal(t, chat.notices(2)[0].Text, chat.notices(2)[1].Text)
}

// A test message comes at once, a snapshot says how the workspace is, and targets are
// part of the configuration.
func TestTargetsAreTriedAndExported(t *testing.T) {
	t.Parallel()
	h, _, duty := watched(t, "--min-severity", "critical", "--quiet-hours", "00:00-23:59", "--timezone", "Europe/Moscow")
	h.Serve(each)
	require.Contains(t, ok(t, h, "alert", "target", "test", "ops", because), "a daemon sends it soon")
	require.Contains(t, opened{h, duty}.notices(1)[0].Text, "This is a test of autopost for workspace news")
	var health struct {
		Queue map[string]int
		At    time.Time
	}
	require.NoError(t, json.Unmarshal([]byte(ok(t, h, "health", "--json")), &health))
	require.WithinDuration(t, time.Now(), health.At, wait.Bound)
	require.Regexp(t, `paused +\d channel`, ok(t, h, "health"))

	exported := ok(t, h, "config", "export")
	require.Contains(t, exported, "alert_targets:")
	require.Contains(t, exported, "quiet_hours: 00:00-23:59")
	h.File("again.yaml", exported)
	require.Contains(t, ok(t, h, "config", "diff", "again.yaml"), "nothing")
	h.File("fewer.yaml", strings.Replace(exported, "min_severity: critical", "min_severity: error", 1))
	ok(t, h, "config", "apply", "fewer.yaml", "--yes", because)
	require.Equal(t, "error", pgtest.Value[string](h.DB, `select min_severity from autopost.alert_targets`))

	wrong := h.Run(nil, "alert", "target", "set", "ops", "--quiet-hours", "late", because)
	require.Equal(t, 1, wrong.Code)
	require.Contains(t, wrong.Stderr, "quiet_hours must be a span of hours: write from-until")
	ok(t, h, "alert", "target", "remove", "ops", because)
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.alert_targets`))
}
