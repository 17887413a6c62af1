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

	"autopost/internal/pgtest"
	"autopost/internal/sim"
	"autopost/internal/sim/telegram"
	"autopost/test/house"
)

// failure is one of docs/operate/walk.md: how it is made, what people are told of it, and
// what they type.
type failure struct {
	kind, severity string
	// of is what the subject begins with, where others may fail alike.
	of string
	// says is what the alert must say: its subject first.
	says  []string
	arise func(n *night)
	// mend does what is to be done outside, types what the alert says, and looks whether that helped.
	mend func(n *night, told string)
}

// night is a house with everything that fails in it, and a chat of the people on duty for each kind of alert.
type night struct {
	*house.House

	t      *testing.T
	d      *house.Daemon
	second *house.Daemon
	chats  map[string]string
}

// typed is the command of an alert's remedy that begins with these words, with what a person puts in.
func (n *night) typed(told, begins string, puts ...string) string {
	n.t.Helper()
	_, remedy, _ := strings.Cut(told, "To do: ")
	for _, command := range regexp.MustCompile(`autopost [a-z][^;:.(),]*`).FindAllString(remedy, -1) {
		words := strings.Fields(strings.NewReplacer(puts...).Replace(command))
		if strings.HasPrefix(command, "autopost "+begins) {
			return ok(n.t, n.House, words[1:]...)
		}
	}
	require.FailNow(n.t, "the remedy has no such command: "+begins, told)
	return ""
}

// told are the messages that say of a failure that it is NEW, or OVER. One that lasts may be told of again as MORE.
func (n *night) told(word string, f failure) []sim.Entry {
	return slices.DeleteFunc(n.Sends(sim.Filter{Chat: n.chats[f.kind]}), func(e sim.Entry) bool {
		return !strings.Contains(e.Text, word+" "+f.severity+" "+f.kind+": "+f.of)
	})
}

// hears waits for such a message.
func (n *night) hears(word string, f failure) string {
	n.t.Helper()
	n.Until(f.kind+" is told as "+word, alertPatience, func() bool { return len(n.told(word, f)) > 0 })
	return n.told(word, f)[0].Text
}

func (n *night) post(tag string) {
	n.t.Helper()
	answer := n.Push(n.d, "secret-cms", house.Post("text", tag+" at night", "tags", []string{tag}))
	require.Equal(n.t, http.StatusAccepted, answer.Status)
}

// arrived waits until a platform has the post of a tag so often.
func (n *night) arrived(tag string, times int) {
	n.t.Helper()
	n.Until("the post is there", alertPatience, func() bool { return len(madeBy(n.House, tag+" at night")) == times })
}

// station makes a channel that posts of its tag alone go to, and returns its chat.
func (n *night) station(c house.Channel) string {
	n.t.Helper()
	c.Filter = fmt.Sprintf(`{"include_any": [%q]}`, c.ID)
	return n.Channel("news", c)
}

const (
	oldToken = "canary-max-token-of-yesterday"
	newToken = "canary-max-token-of-today"
)

var failures = []failure{
	// The first: a daemon that dies with a message in hand has it told late, or twice.
	{
		kind: "daemon_lost", severity: "error", says: []string{"the daemon on ", "has not been heard of since", "others go on"},
		arise: func(n *night) {
			n.second = n.Serve(n.extra()...)
			n.second.Kill()
			n.Exec(`update autopost.dispatch_runs set started_at = started_at - interval '1 hour',
				seen_at = case when started_at = (select max(started_at) from autopost.dispatch_runs) then seen_at - interval '10 minutes' else seen_at end`)
		},
		mend: func(n *night, told string) {
			require.Contains(n.t, told, "autopost serve")
			stopped := n.Serve(n.extra()...)
			require.Zero(n.t, stopped.Stop(), "one that ends by itself is not missed")
		},
	},
	{
		kind: "channel_refused", severity: "error", says: []string{"channel kicked: telegram refuses its posts", "it is paused until"},
		arise: func(n *night) {
			chat := n.station(house.Channel{ID: "kicked", Platform: house.Telegram})
			n.World.Telegram.SetAccess(numeric(n.t, chat), telegram.AccessKicked)
			n.post("kicked")
		},
		mend: func(n *night, told string) {
			chat := pgtest.Value[string](n.DB, `select target_id from autopost.channels where channel_id = 'kicked'`)
			require.Equal(n.t, 1, n.Run(nil, "channel", "check", "kicked").Code)
			n.World.Telegram.SetAccess(numeric(n.t, chat), telegram.AccessAdmin)
			n.typed(told, "channel check")
			n.typed(told, "channel resume")
			n.typed(told, "deliveries requeue")
			n.arrived("kicked", 1)
		},
	},
	{
		kind: "auth_lost", severity: "critical", says: []string{"credential:night-bot: the platform refuses it; its channels pause, their posts wait"},
		arise: func(n *night) {
			require.NoError(n.t, n.World.MAX.AddBot(oldToken))
			require.Zero(n.t, n.RunOn(oldToken, "credential", "set", "night-bot", "--platform", house.MAX, because).Code)
			n.station(house.Channel{ID: "revoked", Platform: house.MAX})
			ok(n.t, n.House, "channel", "set", "revoked", "--auth-ref", "night-bot", because)
			n.World.MAX.RevokeBot(oldToken)
			n.post("revoked")
		},
		mend: func(n *night, told string) {
			require.NoError(n.t, n.World.MAX.AddBot(newToken))
			n.File("token", newToken)
			require.Contains(n.t, n.typed(told, "credential set", "FILE", "token"), "1 channels that waited for it go on")
			n.typed(told, "credential requeue")
			n.arrived("revoked", 1)
		},
	},
	{
		kind: "auth_expiring", severity: "warning", says: []string{"credential old-key expires on"},
		arise: func(n *night) {
			require.Zero(n.t, n.RunOn(firstKey, "credential", "set", "old-key", "--platform", "webhook", "--valid-for", "48h", because).Code)
		},
		mend: func(n *night, told string) {
			n.File("key", secondKey)
			n.typed(told, "credential set", "FILE", "key")
		},
	},
	{
		kind: "source_failing", severity: "warning", says: []string{"source wire failed 3 times in a row, nothing comes from it: 127.0.0.1 answered 404"},
		arise: func(n *night) {
			n.station(house.Channel{ID: "wire", Platform: house.Telegram})
			ok(n.t, n.House, "source", "add", "wire", "--url", n.WorldURL+"/feeds/gone", "--interval", "1", "--tag", "wire", because)
		},
		mend: func(n *night, told string) {
			n.World.Feeds.Set("moved", "application/rss+xml", feed(1))
			require.NotZero(n.t, n.Run(nil, "source", "test", "wire").Code)
			n.typed(told, "source set", "URL", n.WorldURL+"/feeds/moved")
			n.typed(told, "source test")
			n.typed(told, "source fetch")
		},
	},
	{
		kind: "breaker_open", severity: "error", of: "group max/down", says: []string{"group max/down: the platform has failed for"},
		arise: func(n *night) {
			chat := n.station(house.Channel{ID: "down", Platform: house.MAX, Group: "down"})
			n.Fault(sim.Fault{Platform: house.MAX, Chat: chat, Effect: sim.EffectStatus, Status: 503, Code: "service.unavailable"})
			n.post("down")
		},
		mend: func(n *night, told string) {
			require.Contains(n.t, n.typed(told, "group list"), "down")
			n.World.Faults.Clear()
			n.arrived("down", 1)
		},
	},
	{
		kind: "outcome_held", severity: "error", says: []string{"1 posts wait for a person, nobody knows whether they were published: ", " in held"},
		arise: func(n *night) {
			chat := n.station(house.Channel{ID: "held", Platform: house.Telegram, OnUnknown: "hold"})
			n.Fault(sim.Fault{Platform: house.Telegram, Chat: chat, Effect: sim.EffectReset, To: 1})
			n.post("held")
		},
		mend: func(n *night, told string) {
			id := regexp.MustCompile(`[0-9a-f-]{36} in held`).FindString(told)[:36]
			require.Contains(n.t, ok(n.t, n.House, "why", id), "autopost deliveries resolve")
			n.typed(told, "deliveries resolve ID --absent", "ID", id)
			n.arrived("held", 1)
		},
	},
	{
		kind: "webhook_failing", severity: "error", says: []string{"result webhook crm has taken nothing for", "what it is told waits: "},
		arise: func(n *night) {
			require.NoError(n.t, n.World.Webhook.AddEndpoint("crm", firstKey))
			ok(n.t, n.House, "credential", "bind", "signing", "--platform", "webhook", "--secret-ref", "env:HOUSE_FIRST_KEY", because)
			ok(n.t, n.House, "webhook", "add", "crm", "--url", n.WorldURL+"/webhook/crm", "--signing-ref", "signing", because)
			n.Fault(sim.Fault{Platform: "webhook", Effect: sim.EffectStatus, Status: 502})
		},
		mend: func(n *night, told string) {
			n.World.Faults.Clear()
			n.typed(told, "webhook test")
		},
	},
	{
		kind: "oldest_due", severity: "error", says: []string{"a post has been due for", "in channel slow"},
		arise: func(n *night) {
			n.station(house.Channel{ID: "slow", Platform: house.Telegram, Rate: 0.2})
			for post := range 20 {
				n.Push(n.d, "secret-cms", house.Post("text", fmt.Sprintf("slow at night, %d", post), "tags", []string{"slow"}))
			}
		},
		mend: func(n *night, told string) {
			require.Contains(n.t, n.typed(told, "forecast"), "slow")
			n.typed(told, "channel set", "ID", "slow", "RPS", "5")
			n.arrived("slow", 20)
		},
	},
}

func (n *night) extra() []string { return []string{each, "HOUSE_FIRST_KEY=" + firstKey} }

// Everything fails in one night. Each failure is told once, by name, with what to type; that is
// typed as it stands and helps; and each is told to be over, once.
func TestOperatorsWalk(t *testing.T) {
	t.Parallel()
	n := &night{House: house.New(t), t: t, chats: map[string]string{}}
	n.Workspace("news")
	n.Endpoint("news", "cms", "secret-cms")
	// What a person would not wait for either. A queue that is behind is noted by the sweep of the gates: calm is longer.
	n.Exec(`update autopost.settings set value = v.value::jsonb from (values ('alert_calm_seconds', '35'), ('alert_breaker_seconds', '1'), ('breaker_channels', '1'),
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
	told := map[string]string{}
	for _, f := range failures {
		said := n.hears("NEW", f)
		for _, part := range f.says {
			require.Contains(t, said, part)
		}
		require.Regexp(t, `since \d{4}-\d\d-\d\d \d\d:\d\d UTC`, said)
		told[f.kind] = said
	}
	page, err := os.ReadFile("../../docs/operate/walk.md")
	require.NoError(t, err)
	list, doctor := ok(t, n.House, "alert", "list", "--open"), n.Run(nil, "doctor")
	require.Equal(t, 1, doctor.Code)
	for _, f := range failures {
		require.Contains(t, string(page), "`"+f.kind+"`")
		require.Contains(t, list, f.kind)
		require.Contains(t, doctor.Stdout, "alert news/"+f.kind)
		f.mend(n, told[f.kind])
	}
	for _, f := range failures {
		require.NotContains(t, n.hears("OVER", f), "To do", "there is nothing to do any more")
	}
	for _, f := range failures {
		require.Len(t, n.told("NEW", f), 1, f.kind)
		require.Len(t, n.told("OVER", f), 1, f.kind)
	}
	n.Verified()
}

// The database is away: no alert can come, but every door says so and nothing taken is
// lost; it is back, and the posts go on.
func TestOperatorsWalkWithoutADatabase(t *testing.T) {
	t.Parallel()
	h, chat, _ := newsroom(t, house.WithItsOwnServer)
	d := h.Serve(each)
	require.Equal(t, http.StatusAccepted, h.Push(d, "secret-cms", house.Post("text", "Before")).Status)
	h.Drained("news")
	h.StopServer()
	h.Until("readiness says so", alertPatience, func() bool {
		answer, err := h.Get(d.URL+"/readyz", "")
		return err == nil && answer.Status == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(answer.Body), "look whether it runs, and at DATABASE_URL")
	})
	answer, err := h.Get(d.URL+"/readyz", "")
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(answer.Body), "see database")
	require.NotContains(t, fmt.Sprint(answer.Body), "NTP", "the clock is not what is wrong")
	require.Equal(t, http.StatusServiceUnavailable, h.Push(d, "secret-cms", house.Post("text", "Meanwhile")).Status)
	doctor := h.Run(nil, "doctor")
	require.Equal(t, 1, doctor.Code)
	require.Contains(t, doctor.Stderr, "DATABASE_URL")
	h.Until("the log says so", alertPatience, func() bool { return strings.Contains(d.Log(), "dispatch.round_failed") })

	h.StartServer()
	h.Until("it is ready again", alertPatience, func() bool {
		answer, err := h.Get(d.URL+"/readyz", "")
		return err == nil && answer.Status == http.StatusOK
	})
	h.Until("it takes posts again", alertPatience, func() bool {
		return h.Push(d, "secret-cms", house.Post("text", "Meanwhile")).Status == http.StatusAccepted
	})
	h.Until("the posts go on", alertPatience, func() bool { return len(h.Accepted(sim.Filter{Chat: chat})) == 2 })
}

// A clock goes wrong: people are told whose and by how much, and when it is right again.
func TestOperatorsWalkWithAWrongClock(t *testing.T) {
	t.Parallel()
	h, _, duty := watched(t, "--kinds", "clock_skew")
	h.Exec(`create table public.clock_error (by interval not null)`)
	h.Exec(`insert into public.clock_error values ('-10 seconds'); grant select on public.clock_error to public`)
	h.Serve(each)
	h.Exec(`create or replace function autopost.now_ts() returns timestamptz language sql volatile parallel safe
		as 'select clock_timestamp() + (select e.by from public.clock_error e)'`)
	chat := opened{h, duty}
	told := chat.told(1)[0].Text
	require.Contains(t, told, "NEW error clock_skew: the clock of the daemon on ")
	require.Regexp(t, `is (9|10)\d{3} ms ahead of the database's`, told)
	require.Contains(t, told, "timedatectl set-ntp true")
	h.Exec(`update public.clock_error set by = '0'`)
	require.Contains(t, chat.told(2)[1].Text, "OVER error clock_skew")
	require.Len(t, chat.told(2), 2)
}

// The private PostgreSQL ends: only another start brings it back, so the daemon ends and says so.
func TestOperatorsWalkWithoutThePrivateDatabase(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	private := []string{"DATABASE_URL=", "AUTOPOST_MIGRATE=auto"}
	d := h.Serve(private...)
	first, err := os.ReadFile(h.Folder("data/pg/data/postmaster.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.Split(string(first), "\n")[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGINT))
	require.True(t, d.Died(alertPatience))
	require.Contains(t, d.Log(), "start autopost serve again")
	require.Zero(t, h.Serve(private...).Stop())
}
