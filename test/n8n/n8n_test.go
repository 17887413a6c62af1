//go:build n8n

package n8n

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/port"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
)

// operators is the chat of the reports.
const operators = "-1000000000001"

// stage is an installation whose workflows run in n8n.
type stage struct {
	*harness.Harness
	t *testing.T
	n *server
	// api is the address of the daemon with the upload proxy.
	api string
}

// TestWorkflows runs every workflow in one n8n. The parts share it, each with its own workspaces. AUTOPOST_N8N_PARTS
// selects parts by name.
func TestWorkflows(t *testing.T) {
	began := time.Now()
	h := harness.New(t, harness.WithConnections(4))
	n := newServer(t, h)
	s := &stage{h, t, n, port.Free(t)}
	s.Workspace("media")
	key := h.Run(nil, "apikey", "add", "--workspace", "media", "--name", "n8n", "--role", "editor", "--json")
	require.Zero(t, key.Code, key.Stderr)
	var made struct{ Key string }
	require.NoError(t, json.Unmarshal([]byte(key.Stdout), &made))
	n.credentials(made.Key)
	files := exports(t)
	files["call.json"] = testCall(t)
	n.importAll(files, "https://platform-api2.max.ru", h.WorldURL+"/max", "http://127.0.0.1:8080", "http://"+s.api)
	n.start()
	n.publishAll(files)
	took(t, "import, publish and start", began)
	parts := regexp.MustCompile(os.Getenv("AUTOPOST_N8N_PARTS"))
	for _, part := range []struct {
		name string
		run  func(s *stage)
	}{
		{"criteria", criteria}, {"an empty workspace between full ones", emptyBetween}, {"answers of the push endpoint", answers},
		{"series and media", series}, {"unknown outcomes", unknownOutcomes}, {"pull", pull}, {"monitor and recovery", recovery},
		{"a bot conversation", conversation}, {"the same rows", sameRows}, {"stopped in mid-run", stopped}, {"beside a daemon", besideDaemon},
	} {
		if !parts.MatchString(part.name) {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			since := time.Now()
			part.run(&stage{h, t, n, s.api})
			took(t, part.name, since)
		})
	}
	h.Verified()
	took(t, "all", began)
}

// Until is that of the harness, for the part that waits.
func (s *stage) Until(what string, done func() bool) {
	s.t.Helper()
	wait.Until(s.t, what, done)
}

// UntilTrue is that of the harness, for the part that waits.
func (s *stage) UntilTrue(sql string, args ...any) {
	s.t.Helper()
	s.Until(sql, func() bool { return pgtest.Value[bool](s.DB, "select coalesce(("+sql+"), false)", args...) })
}

// Drained waits until no delivery of a workspace is due or in flight, except those that wait for a person.
func (s *stage) Drained(workspace string) {
	s.t.Helper()
	s.UntilTrue(`not exists (select 1 from autopost.deliveries d where d.workspace_id = $1 and d.status in ('queued', 'claimed', 'sending', 'retry')
		and d.next_retry_at is distinct from 'infinity')`, workspace)
}

// enqueue pushes a post through 01_ingest.
func (s *stage) enqueue(secret string, fields ...any) map[string]any {
	s.t.Helper()
	status, answer := s.n.push(secret, harness.Post(fields...))
	require.Equal(s.t, 202, status, "%v", answer)
	return answer
}

// sent waits until a workspace has n sent deliveries.
func (s *stage) sent(workspace string, n int) {
	s.t.Helper()
	s.UntilTrue(`select count(*) = $2 from autopost.deliveries where workspace_id = $1 and status = 'sent'`, workspace, n)
}

// criteria are the four of the demo.
func criteria(s *stage) {
	s.Workspace("crit")
	s.Endpoint("crit", "cms", "secret-crit")
	first := s.Channel("crit", harness.Channel{ID: "first", Platform: harness.Telegram})
	s.Channel("crit", harness.Channel{ID: "second", Platform: harness.MAX})
	s.enqueue("secret-crit", "text", "one")
	s.sent("crit", 2)

	// 1. A row is enough for a new channel.
	third := s.Channel("crit", harness.Channel{ID: "third", Platform: harness.MAX})
	s.enqueue("secret-crit", "text", "two")
	s.sent("crit", 5)
	require.Len(s.t, s.Accepted(sim.Filter{Chat: third}), 1)

	// 2. A 429 with retry_after is waited out, then the post is sent.
	s.Fault(sim.Fault{Platform: harness.Telegram, Chat: first, Effect: sim.EffectStatus, Status: 429, RetryAfter: 7, From: 1, To: 1})
	s.enqueue("secret-crit", "text", "three")
	s.sent("crit", 8)
	calls := s.Sends(sim.Filter{Chat: first})
	require.GreaterOrEqual(s.t, calls[len(calls)-1].Start.Sub(calls[len(calls)-2].End), 7*time.Second)
	require.Equal(s.t, 1, pgtest.Value[int](s.DB, `select count(*) from autopost.events where workspace_id = 'crit' and action = 'retry_scheduled' and error ->> 'code' = 'tg_429'`))

	// 3. A repeat is suppressed in each channel.
	status, answer := s.n.push("secret-crit", harness.Post("text", "three"))
	require.EqualValues(s.t, 3, answer["deduped"], "%d %v", status, answer)
	require.Equal(s.t, 8, pgtest.Value[int](s.DB, `select count(*) from autopost.deliveries where workspace_id = 'crit'`))

	// 4. A bad channel pauses; the others get their posts.
	s.Fault(sim.Fault{Platform: harness.Telegram, Chat: first, Effect: sim.EffectStatus, Status: 403, Description: "Forbidden: bot was kicked from the channel chat"})
	s.enqueue("secret-crit", "text", "four")
	s.sent("crit", 10)
	s.UntilTrue(`select exists (select 1 from autopost.deliveries where workspace_id = 'crit' and channel_id = 'first' and status = 'failed_permanent')
		and (select paused_until > now() from autopost.channels where workspace_id = 'crit' and channel_id = 'first')`)
	s.World.Faults.Clear()
	for text, copies := range s.Copies() {
		require.Equal(s.t, 1, copies, text)
	}
}

// emptyBetween has a workspace in the middle of the window whose claim answers nothing.
func emptyBetween(s *stage) {
	for _, id := range []string{"eb-1", "eb-2", "eb-3"} {
		s.Workspace(id)
		s.Endpoint(id, "cms", "secret-"+id)
		platform := harness.Telegram
		if id == "eb-2" {
			platform = harness.X // no adapter of n8n
		}
		s.Channel(id, harness.Channel{ID: "a", Platform: platform})
		s.enqueue("secret-"+id, "text", "for "+id)
	}
	s.sent("eb-1", 1)
	s.sent("eb-3", 1)
	require.Equal(s.t, "queued 0", pgtest.Value[string](s.DB, `select status || ' ' || attempt from autopost.deliveries where workspace_id = 'eb-2'`))
	s.enqueue("secret-eb-3", "text", "again")
	s.sent("eb-3", 2)
	s.Exec(`update autopost.workspaces set status = 'paused' where workspace_id = 'eb-2'`)
}
