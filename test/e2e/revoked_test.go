package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	simx "autopost/internal/sim/twitter"
	"autopost/internal/sim/youtube"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const (
	revokedPosts = 10 // for each channel
	revokedRate  = 5  // posts a second, of each channel
)

// grantor is who gives out credentials of a platform, and takes them back.
type grantor struct {
	// targets are those of the channels of one credential, then those of another.
	targets [4]string
	// grant makes a fresh secret of the credential "lost" or "good".
	grant func(t *testing.T, w *harness.Harness, of string) string
	// revoke takes back all that was granted of the first until now.
	revoke func(w *harness.Harness)
	// renewals are how often a secret that is refused is shown to the platform for another.
	renewals int
	film     bool
}

func object(t *testing.T, fields map[string]string) string {
	t.Helper()
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(text)
}

var grantors = map[string]grantor{
	harness.Telegram: {
		targets: [4]string{"-1001", "-1002", "-1003", "-1004"},
		grant: func(t *testing.T, h *harness.Harness, of string) string {
			for id := int64(-1004); id <= -1001; id++ {
				h.World.Telegram.AddChat(telegram.Chat{ID: id})
			}
			token := "7002001:AAcanaryTokenOfTheBot-" + of
			if h.World.Telegram.AddBot(token) != nil || len(h.Sends()) > 0 {
				token += "-again"
			}
			require.NoError(t, h.World.Telegram.AddBot(token))
			return token
		},
		revoke: func(h *harness.Harness) { h.World.Telegram.RevokeBot("7002001:AAcanaryTokenOfTheBot-lost") },
	},
	harness.MAX: {
		targets: [4]string{"-71", "-72", "-73", "-74"},
		grant: func(t *testing.T, h *harness.Harness, of string) string {
			for id := int64(-74); id <= -71; id++ {
				h.World.MAX.AddChat(maxmessenger.Chat{ID: id})
			}
			token := "canary-max-token-" + of
			if len(h.Sends()) > 0 {
				token += "-again"
			}
			require.NoError(t, h.World.MAX.AddBot(token))
			return token
		},
		revoke: func(h *harness.Harness) { h.World.MAX.RevokeBot("canary-max-token-lost") },
	},
	harness.X: {
		// An account is known by its id and by its name.
		targets: [4]string{"42", "@lost", "43", "@good"}, renewals: 1,
		grant: func(t *testing.T, h *harness.Harness, of string) string {
			id := map[string]string{"lost": "42", "good": "43"}[of]
			require.NoError(t, h.World.X.AddApp(simx.App{Name: "app", ClientID: "client", ClientSecret: "canary-x-hush"}))
			require.NoError(t, h.World.X.AddUser(simx.User{ID: id, Username: of}))
			access, refresh, err := h.World.X.GrantOAuth2("app", id, simx.AllScopes)
			require.NoError(t, err)
			return object(t, map[string]string{"client_id": "client", "client_secret": "canary-x-hush", "access_token": access, "refresh_token": refresh})
		},
		revoke: func(h *harness.Harness) { h.World.X.Disconnect("42") },
	},
	harness.YouTube: {
		// A target that is shorter than an id cannot be distinguished from the credential's own.
		targets: [4]string{"UCrevoked-lost", "UCrevoked", "UCrevoked-good", "UCrevoke"}, renewals: 1, film: true,
		grant: func(t *testing.T, h *harness.Harness, of string) string {
			project := youtube.Project{ID: "shows", ClientID: "client", ClientSecret: "canary-google-hush"}
			require.NoError(t, h.World.YouTube.AddProject(project))
			require.NoError(t, h.World.YouTube.AddChannel(youtube.Channel{ID: "UCrevoked-" + of, Title: of}))
			refresh, err := h.World.YouTube.Grant(project.ID, "UCrevoked-"+of, youtube.ScopeAll+" "+youtube.ScopeUpload)
			require.NoError(t, err)
			return object(t, map[string]string{"client_id": "client", "client_secret": project.ClientSecret, "refresh_token": refresh})
		},
		revoke: func(h *harness.Harness) { h.World.YouTube.Disconnect("UCrevoked-lost") },
	},
}

// A credential is taken back in the middle of the work of its two channels. They pause at
// once, their queue waits, one event and one alert say so, the other two go on; another
// secret brings the queue on in its order and at its rate, and nothing is lost or sent twice.
func TestARevokedCredentialStopsItsChannelsAlone(t *testing.T) {
	for platform, g := range grantors {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			h := harness.New(t)
			secrets := withCredentials(t, h, platform, g, "lost", "good")
			d := h.Serve("AUTOPOST_LOG=debug", "MONITOR_INTERVAL_SECONDS=1")
			for n := range revokedPosts {
				if n == revokedPosts/2 {
					h.Until("some are sent", func() bool { return len(madeBy(h, "lost-1")) >= 2 && len(madeBy(h, "lost-2")) >= 2 })
					g.revoke(h)
				}
				for _, channel := range []string{"lost-1", "lost-2", "good-1", "good-2"} {
					require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", g.post(h, channel, n)).Status)
				}
			}
			const paused = `select count(*) = 2 from autopost.channels c where c.channel_id like 'lost%' and c.auth_held and c.paused_until > now()`
			h.UntilTrue(paused)
			h.Until("the others go on", func() bool {
				return len(madeBy(h, "good-1")) == revokedPosts && len(madeBy(h, "good-2")) == revokedPosts
			})

			first, dead := deadCalls(h)
			at := pgtest.Value[time.Time](h.DB, `select max(ts) from autopost.events where action = 'channel_paused'`)
			late := slices.DeleteFunc(slices.Clone(dead), func(e sim.Entry) bool { return e.Start.Before(at) })
			beside := slices.DeleteFunc(slices.Clone(dead), func(e sim.Entry) bool { return e.Start.Before(first) })
			gap := max(longestGap(madeBy(h, "good-1")), longestGap(madeBy(h, "good-2")))
			t.Logf("%s: both paused %s after the first refusal; %d calls with the dead secret that began after it, %d after the pause; longest gap beside %s",
				platform, at.Sub(first).Round(time.Millisecond), len(beside), len(late), gap.Round(time.Millisecond))
			require.Empty(t, late)
			require.LessOrEqual(t, len(beside), 1+3*g.renewals, "what was in flight on the other channel, and one renewal")
			require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'auth_lost'`))
			require.Equal(t, []string{"credential:lost"}, pgtest.Column[string](h.DB, `select subject from autopost.alerts where ended_at is null`))
			require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.channels where channel_id like 'good%' and paused_until is not null`))
			waiting := pgtest.Column[string](h.DB, `select substring(m.payload ->> 'text' from '^[^\n]*') from autopost.deliveries d
				join autopost.messages m using (workspace_id, message_id) where d.status in ('queued', 'retry') order by 1`)
			require.NotEmpty(t, waiting)

			again := g.grant(t, h, "lost")
			before := len(h.Accepted())
			run := h.RunWithInput(again, "credential", "set", "lost", "--platform", platform, "--reason", "linked again")
			require.Zero(t, run.Code, run.Stderr)
			h.Until("what waited is sent", func() bool { return len(h.Accepted()) == before+len(waiting) })
			require.Zero(t, h.Run(nil, "credential", "relink", "lost", "--reason", "linked again").Code)
			h.Drained("acme")
			for _, channel := range []string{"lost-1", "lost-2"} {
				var came []string
				sent := madeBy(h, channel)
				for _, e := range sent {
					if slices.Contains(waiting, e.Text) {
						came = append(came, e.Text)
					}
				}
				require.True(t, slices.IsSorted(came), "in their order: %v", came)
				slots := h.ChannelSlots(channel) // both channels have one account
				h.SlotsWithinRate(channel, slots, revokedRate)
				h.AfterSlots(channel, sent, slots)
				require.Len(t, sent, revokedPosts, "each once")
			}
			require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.alerts where ended_at is null`))
			showsNone(t, h, append(secrets, again), d.Log())
			h.Verified()
		})
	}
}

// post is the nth of a channel.
func (g grantor) post(h *harness.Harness, channel string, n int) string {
	text := fmt.Sprintf("%s %02d", channel, n)
	fields := []any{"text", text, "tags", []string{channel}}
	if g.film {
		fields = append(fields, "media", []any{film(h, fmt.Sprintf("%s-%d.mp4", channel, n), 20_000+n)},
			"variants", map[string]any{"youtube": map[string]any{"title": text}})
	}
	return harness.Post(fields...)
}

// withCredentials has two channels of each of the named credentials of a platform.
func withCredentials(t *testing.T, h *harness.Harness, platform string, g grantor, names ...string) (secrets []string) {
	t.Helper()
	h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
	h.Endpoint("acme", "in", "e2e-secret")
	h.Unlimited("acme", platform, platform)
	for i, name := range names {
		secrets = append(secrets, g.grant(t, h, name))
		run := h.RunWithInput(secrets[i], "credential", "set", name, "--platform", platform, "--reason", "e2e")
		require.Zero(t, run.Code, run.Stderr)
		for n, target := range g.targets[2*i : 2*i+2] {
			h.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, route_filter)
				values ('acme', $1, $2, $3, $4, $2, $5, jsonb_build_object('include_any', jsonb_build_array($1::text)))`,
				fmt.Sprintf("%s-%d", name, n+1), platform, target, name, revokedRate)
		}
	}
	return secrets
}

// madeBy are the posts that the platform made for a channel, in the order of their arrival.
func madeBy(h *harness.Harness, channel string) []sim.Entry {
	return slices.DeleteFunc(h.Accepted(), func(e sim.Entry) bool { return !strings.HasPrefix(e.Text, channel) })
}

// deadCalls are those that the platform refused for their credential; first is when it
// had answered the first of them.
func deadCalls(h *harness.Harness) (first time.Time, calls []sim.Entry) {
	for _, e := range h.World.Log.Entries() {
		if e.Status == http.StatusUnauthorized || strings.HasSuffix(e.Method, "/token") && e.Status == http.StatusBadRequest {
			calls = append(calls, e)
			if first.IsZero() || e.End.Before(first) {
				first = e.End
			}
		}
	}
	return first, calls
}

func longestGap(entries []sim.Entry) time.Duration {
	var longest time.Duration
	for i := 1; i < len(entries); i++ {
		longest = max(longest, entries[i].Start.Sub(entries[i-1].Start))
	}
	return longest
}

// showsNone looks for the parts of secrets in every table and in what a program printed.
func showsNone(t *testing.T, h *harness.Harness, secrets []string, printed string) {
	t.Helper()
	places := map[string]string{"log": printed}
	for _, table := range pgtest.Column[string](h.DB, `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = 'autopost' and c.relkind in ('r', 'p') and not c.relispartition`) {
		places[table] = strings.Join(pgtest.Column[string](h.DB, fmt.Sprintf(`select (to_jsonb(t) - 'sealed' - 'wrapped_key')::text from autopost.%q t`, table)), "\n")
	}
	require.Greater(t, len(places), 20)
	for _, secret := range secrets {
		for _, part := range partsOf(secret) {
			encoded := base64.StdEncoding.EncodeToString([]byte("client:" + part))
			for place, text := range places {
				require.NotContains(t, text, part[len(part)/3:], "in %s", place)
				require.NotContains(t, text, encoded[len(encoded)/2:], "in %s", place)
			}
		}
	}
}
