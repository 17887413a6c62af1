package e2e

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// failure is an entry of docs/operate/failures.md: how the test causes it, its notice and its remedy.
type failure struct {
	kind, severity string
	// of is the start of the subject, where several alerts share a kind.
	of string
	// says lists texts that the alert must contain: its subject first.
	says  []string
	arise func(n *shift)
	// mend repairs the cause, runs the commands of the notice and checks their effect.
	mend func(n *shift, notice string)
}

// shift is an installation with all failures, and one operator chat for each kind of alert.
type shift struct {
	*harness.Harness

	t      *testing.T
	d      *harness.Daemon
	second *harness.Daemon
	chats  map[string]string
}

// typed runs the command of a remedy that begins with these words, with placeholders replaced, and returns its output.
func (n *shift) typed(notice, begins string, puts ...string) string {
	n.t.Helper()
	_, remedy, _ := strings.Cut(notice, "To do: ")
	for _, command := range regexp.MustCompile(`autopost [a-z][^;:.(),]*`).FindAllString(remedy, -1) {
		words := strings.Fields(strings.NewReplacer(puts...).Replace(command))
		if strings.HasPrefix(command, "autopost "+begins) {
			return ok(n.t, n.Harness, words[1:]...)
		}
	}
	require.FailNow(n.t, "the remedy has no such command: "+begins, notice)
	return ""
}

// notices returns the messages that report a failure as NEW or OVER. A lasting failure may also be reported as MORE.
func (n *shift) notices(word string, f failure) []sim.Entry {
	return slices.DeleteFunc(n.Sends(sim.Filter{Chat: n.chats[f.kind]}), func(e sim.Entry) bool {
		return !strings.Contains(e.Text, word+" "+f.severity+" "+f.kind+": "+f.of)
	})
}

// hears waits for such a message and returns its text.
func (n *shift) hears(word string, f failure) string {
	n.t.Helper()
	n.Until(f.kind+" is reported as "+word, func() bool { return len(n.notices(word, f)) > 0 })
	return n.notices(word, f)[0].Text
}

func (n *shift) post(tag string) {
	n.t.Helper()
	answer := n.Push(n.d, "secret-cms", harness.Post("text", tag+" at night", "tags", []string{tag}))
	require.Equal(n.t, http.StatusAccepted, answer.Status)
}

// arrived waits until a platform has the post of a tag the given number of times.
func (n *shift) arrived(tag string, times int) {
	n.t.Helper()
	n.Until("the post is there", func() bool { return len(madeBy(n.Harness, tag+" at night")) == times })
}

// station makes a channel that only gets posts of its tag, and returns its chat.
func (n *shift) station(c harness.Channel) string {
	n.t.Helper()
	c.Filter = fmt.Sprintf(`{"include_any": [%q]}`, c.ID)
	return n.Channel("news", c)
}

const (
	oldToken = "canary-max-token-of-yesterday"
	newToken = "canary-max-token-of-today"
)

var failures = []failure{
	// First in the list: a daemon that dies with a claimed message delays or repeats it.
	{
		kind: "daemon_lost", severity: "error", says: []string{"the daemon on ", "has not been heard of since", "others go on"},
		arise: func(n *shift) {
			n.second = n.Serve(n.extra()...)
			n.second.Kill()
			n.Exec(`update autopost.dispatch_runs set started_at = started_at - interval '1 hour',
				seen_at = case when started_at = (select max(started_at) from autopost.dispatch_runs) then seen_at - interval '10 minutes' else seen_at end`)
		},
		mend: func(n *shift, notice string) {
			require.Contains(n.t, notice, "autopost serve")
			stopped := n.Serve(n.extra()...)
			require.Zero(n.t, stopped.Stop(), "a clean end raises no alert")
		},
	},
	{
		kind: "channel_refused", severity: "error", says: []string{"channel kicked: telegram refuses its posts", "it is paused until"},
		arise: func(n *shift) {
			chat := n.station(harness.Channel{ID: "kicked", Platform: harness.Telegram})
			n.World.Telegram.SetAccess(numeric(n.t, chat), telegram.AccessKicked)
			n.post("kicked")
		},
		mend: func(n *shift, notice string) {
			chat := pgtest.Value[string](n.DB, `select target_id from autopost.channels where channel_id = 'kicked'`)
			require.Equal(n.t, 1, n.Run(nil, "channel", "check", "kicked").Code)
			n.World.Telegram.SetAccess(numeric(n.t, chat), telegram.AccessAdmin)
			n.typed(notice, "channel check")
			n.typed(notice, "channel resume")
			n.typed(notice, "deliveries requeue")
			n.arrived("kicked", 1)
		},
	},
	{
		kind: "auth_lost", severity: "critical", says: []string{"credential:night-bot: the platform refuses the credential; its channels pause"},
		arise: func(n *shift) {
			require.NoError(n.t, n.World.MAX.AddBot(oldToken))
			require.Zero(n.t, n.RunWithInput(oldToken, "credential", "set", "night-bot", "--platform", harness.MAX, because).Code)
			n.station(harness.Channel{ID: "revoked", Platform: harness.MAX})
			ok(n.t, n.Harness, "channel", "set", "revoked", "--auth-ref", "night-bot", because)
			n.World.MAX.RevokeBot(oldToken)
			n.post("revoked")
		},
		mend: func(n *shift, notice string) {
			require.NoError(n.t, n.World.MAX.AddBot(newToken))
			n.File("token", newToken)
			require.Contains(n.t, n.typed(notice, "credential set", "FILE", "token"), "resumed 1 waiting channel")
			n.typed(notice, "credential requeue")
			n.arrived("revoked", 1)
		},
	},
	{
		kind: "auth_expiring", severity: "warning", says: []string{"credential old-key expires on"},
		arise: func(n *shift) {
			require.Zero(n.t, n.RunWithInput(firstKey, "credential", "set", "old-key", "--platform", "webhook", "--valid-for", "48h", because).Code)
		},
		mend: func(n *shift, notice string) {
			n.File("key", secondKey)
			n.typed(notice, "credential set", "FILE", "key")
		},
	},
	{
		kind: "source_failing", severity: "warning", says: []string{"source wire failed 3 times in a row, nothing comes from it: 127.0.0.1 answered 404"},
		arise: func(n *shift) {
			n.station(harness.Channel{ID: "wire", Platform: harness.Telegram})
			ok(n.t, n.Harness, "source", "add", "wire", "--url", n.WorldURL+"/feeds/gone", "--interval", "1s", "--tag", "wire", because)
		},
		mend: func(n *shift, notice string) {
			n.World.Feeds.Set("moved", "application/rss+xml", feed(1))
			require.NotZero(n.t, n.Run(nil, "source", "test", "wire").Code)
			n.typed(notice, "source set", "URL", n.WorldURL+"/feeds/moved")
			n.typed(notice, "source test")
			n.typed(notice, "source fetch")
		},
	},
	{
		kind: "breaker_open", severity: "error", of: "group max/down", says: []string{"group max/down: the platform has failed for"},
		arise: func(n *shift) {
			chat := n.station(harness.Channel{ID: "down", Platform: harness.MAX, Group: "down"})
			n.Fault(sim.Fault{Platform: harness.MAX, Chat: chat, Effect: sim.EffectStatus, Status: 503, Code: "service.unavailable"})
			n.post("down")
		},
		mend: func(n *shift, notice string) {
			require.Contains(n.t, n.typed(notice, "group list"), "down")
			n.World.Faults.Clear()
			n.arrived("down", 1)
		},
	},
	{
		kind: "outcome_held", severity: "error", says: []string{"1 post waits for a person, it is unknown if it was published: ", " in held"},
		arise: func(n *shift) {
			chat := n.station(harness.Channel{ID: "held", Platform: harness.Telegram, OnUnknown: "hold"})
			n.Fault(sim.Fault{Platform: harness.Telegram, Chat: chat, Effect: sim.EffectReset, To: 1})
			n.post("held")
		},
		mend: func(n *shift, notice string) {
			id := regexp.MustCompile(`[0-9a-f-]{36} in held`).FindString(notice)[:36]
			require.Contains(n.t, ok(n.t, n.Harness, "why", id), "autopost deliveries resolve")
			n.typed(notice, "deliveries resolve ID --absent", "ID", id)
			n.arrived("held", 1)
		},
	},
	{
		kind: "webhook_failing", severity: "error", says: []string{"result webhook crm has accepted nothing for", "its events wait: "},
		arise: func(n *shift) {
			require.NoError(n.t, n.World.Webhook.AddEndpoint("crm", firstKey))
			ok(n.t, n.Harness, "credential", "bind", "signing", "--platform", "webhook", "--secret-ref", "env:TEST_FIRST_KEY", because)
			ok(n.t, n.Harness, "webhook", "add", "crm", "--url", n.WorldURL+"/webhook/crm", "--signing-ref", "signing", because)
			n.Fault(sim.Fault{Platform: "webhook", Effect: sim.EffectStatus, Status: 502})
		},
		mend: func(n *shift, notice string) {
			n.World.Faults.Clear()
			n.typed(notice, "webhook test")
		},
	},
	{
		kind: "oldest_due", severity: "error", says: []string{"a post has been due for", "in channel slow"},
		arise: func(n *shift) {
			n.station(harness.Channel{ID: "slow", Platform: harness.Telegram, Rate: 0.05})
			for post := range 20 {
				n.Push(n.d, "secret-cms", harness.Post("text", fmt.Sprintf("slow at night, %d", post), "tags", []string{"slow"}))
			}
		},
		mend: func(n *shift, notice string) {
			require.Contains(n.t, n.typed(notice, "forecast"), "slow")
			n.typed(notice, "channel set", "ID", "slow", "RPS", "5")
			n.arrived("slow", 20)
		},
	},
}

func (n *shift) extra() []string { return []string{each, "TEST_FIRST_KEY=" + firstKey} }

// All failures happen at once. Each is reported once, by name, with its commands. The commands run
// as printed and repair it. Its end is reported once.
func TestOperatorMendsEachFailure(t *testing.T) {
	t.Parallel()
	n := &shift{Harness: harness.New(t), t: t, chats: map[string]string{}}
	n.Workspace("news")
	n.Endpoint("news", "cms", "secret-cms")
	// Shorter delays for the test. No alert may end before its remedy, however long the remedies of the others take.
	n.Exec(`update autopost.settings set value = v.value::jsonb from (values ('alert_calm_seconds', '3600'), ('alert_breaker_seconds', '1'), ('breaker_channels', '1'),
		('breaker_probe_seconds', '1'), ('breaker_probe_cap_seconds', '2'), ('alert_webhook_failing_seconds', '1'), ('alert_oldest_due_seconds', '2')) v (key, value)
		where settings.key = v.key`)
	n.Exec(`update autopost.retry_policies set base_ms = 500, cap_ms = 1000 where kind = 'exponential'`)
	n.d = n.Serve(n.extra()...)
	for i, f := range failures {
		id := int64(-1_000_000_009_900 - i)
		n.World.Telegram.AddChat(telegram.Chat{ID: id, Title: f.kind})
		n.chats[f.kind] = fmt.Sprint(id)
		n.Exec(`select autopost.put_alert_target('news', $1, jsonb_build_object('kind', 'telegram', 'address', $2::text, 'auth_ref', 'telegram', 'kinds', array[$1::text]), 'olga', 'night', false)`,
			f.kind, n.chats[f.kind])
	}
	for _, f := range failures {
		f.arise(n)
	}
	notices := map[string]string{}
	for _, f := range failures {
		said := n.hears("NEW", f)
		for _, part := range f.says {
			require.Contains(t, said, part)
		}
		require.Regexp(t, `since \d{4}-\d\d-\d\d \d\d:\d\d UTC`, said)
		notices[f.kind] = said
	}
	page, err := os.ReadFile("../../docs/operate/failures.md")
	require.NoError(t, err)
	list, doctor := ok(t, n.Harness, "alert", "list", "--open"), n.Run(nil, "doctor")
	require.Equal(t, 1, doctor.Code)
	for _, f := range failures {
		require.Contains(t, string(page), "`"+f.kind+"`")
		require.Contains(t, list, f.kind)
		require.Contains(t, doctor.Stdout, "alert news/"+f.kind)
		f.mend(n, notices[f.kind])
	}
	n.Exec(`update autopost.settings set value = '5' where key = 'alert_calm_seconds'`)
	for _, f := range failures {
		require.NotContains(t, n.hears("OVER", f), "To do", "there is nothing to do any more")
	}
	for _, f := range failures {
		// On a slow machine other work is late, too: that is another alert of the same kind.
		raised := slices.DeleteFunc(n.notices("NEW", f), func(e sim.Entry) bool { return !strings.Contains(e.Text, f.says[0]) })
		require.Len(t, raised, 1, f.kind)
		require.LessOrEqual(t, len(n.notices("OVER", f)), len(n.notices("NEW", f)), f.kind)
	}
	n.Verified()
}

// The database is away: no alert can come. Every endpoint reports it, and no accepted post is
// lost. When it is back, the posts go on.
func TestOperatorWithoutADatabase(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t, harness.WithOwnServer)
	d := h.Serve(each)
	require.Equal(t, http.StatusAccepted, h.Push(d, "secret-cms", harness.Post("text", "Before")).Status)
	h.Drained("news")
	h.StopServer()
	h.Until("readiness says so", func() bool {
		answer, err := h.Get(d.URL+"/readyz", "")
		return err == nil && answer.Status == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(answer.Body), "check that it runs, and check DATABASE_URL")
	})
	answer, err := h.Get(d.URL+"/readyz", "")
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(answer.Body), "see database")
	require.NotContains(t, fmt.Sprint(answer.Body), "NTP", "the clock is not what is wrong")
	require.Equal(t, http.StatusServiceUnavailable, h.Push(d, "secret-cms", harness.Post("text", "Meanwhile")).Status)
	doctor := h.Run(nil, "doctor")
	require.Equal(t, 1, doctor.Code)
	require.Contains(t, doctor.Stderr, "DATABASE_URL")
	h.Until("the log says so", func() bool { return strings.Contains(d.Log(), "dispatch.round_failed") })

	h.StartServer()
	h.Until("it is ready again", func() bool {
		answer, err := h.Get(d.URL+"/readyz", "")
		return err == nil && answer.Status == http.StatusOK
	})
	h.Until("it takes posts again", func() bool {
		return h.Push(d, "secret-cms", harness.Post("text", "Meanwhile")).Status == http.StatusAccepted
	})
	h.Until("the posts go on", func() bool { return len(h.Accepted(sim.Filter{Chat: chat})) == 2 })
}

// A clock is wrong: the notice names the daemon and the error. Its end is reported too.
func TestOperatorWithAWrongClock(t *testing.T) {
	t.Parallel()
	h, _, duty := watched(t, "--kinds", "clock_skew")
	h.Exec(`create table public.clock_error (by interval not null)`)
	h.Share("public.clock_error")
	h.Exec(`insert into public.clock_error values ('-10 seconds'); grant select on public.clock_error to public`)
	h.Serve(each)
	h.Exec(`create or replace function autopost.now_ts() returns timestamptz language sql volatile parallel safe
		as 'select clock_timestamp() + (select e.by from public.clock_error e)'`)
	chat := opened{h, duty}
	notice := chat.notices(1)[0].Text
	require.Contains(t, notice, "NEW error clock_skew: the clock of the daemon on ")
	require.Regexp(t, `is (9|10)\d{3} ms ahead of the database's`, notice)
	require.Contains(t, notice, "timedatectl set-ntp true")
	h.Exec(`update public.clock_error set by = '0'`)
	require.Contains(t, chat.notices(2)[1].Text, "OVER error clock_skew")
	require.Len(t, chat.notices(2), 2)
}

// The private PostgreSQL ends: only another start brings it back, so the daemon ends and says so.
func TestOperatorWithoutThePrivateDatabase(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	private := []string{"DATABASE_URL=", "AUTOPOST_MIGRATE=auto"}
	d := h.Serve(private...)
	first, err := os.ReadFile(h.Folder("data/pg/data/postmaster.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.Split(string(first), "\n")[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGINT))
	require.True(t, d.Died())
	require.Contains(t, d.Log(), "start autopost again")
	require.Zero(t, h.Serve(private...).Stop())
}
