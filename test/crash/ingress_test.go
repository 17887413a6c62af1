package crash

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// point is a place at which a locked row stops the daemon before the kill.
type point struct {
	name string
	// row is the table of the locked row; waits is the pattern of the query that waits for it.
	row, waits string
	// lost ends the session of the daemon, too, and so undoes its transaction. Otherwise the call
	// commits without a client.
	lost bool
}

var points = []point{
	{"before the receipt", `autopost.workspace_endpoints`, `%guard_ingress%`, true},
	{"inside the transaction", `autopost.channel_gates`, `%receive_%push%`, true},
	{"committed, before the answer", `autopost.channel_gates`, `%receive_%push%`, false},
}

// kill starts pushes, kills the daemon at the point and unlocks the row.
func (p point) kill(h *harness.Harness, holder *pgtest.Session, d *harness.Daemon, come func()) {
	const calls = `from pg_stat_activity where datname = current_database() and query like $1 and state = 'active'`
	holder.Exec(`begin`)
	holder.Exec(`select 1 from ` + p.row + ` for update`)
	come()
	h.UntilTrue(`select count(*) > 1 `+calls+` and wait_event_type = 'Lock'`, p.waits)
	d.Kill()
	if p.lost {
		h.UntilTrue(`select count(pg_terminate_backend(pid)) = 0 `+calls, p.waits)
	}
	holder.Exec(`commit`)
	h.UntilTrue(`select count(*) = 0 `+calls, p.waits)
}

const crashKey = "whsec_Y3Jhc2gtY2FuYXJ5LXNpZ25pbmcta2V5"

// endpoints are the two kinds of push endpoints. A source_ref or the signed id identifies a repeat. A
// signed post has another text at every attempt, so only its id identifies it.
var endpoints = map[string]func(*harness.Harness) func(string, int) (harness.Answer, error){
	"by secret": func(h *harness.Harness) func(string, int) (harness.Answer, error) {
		return newSource(h, &harness.Daemon{}).send
	},
	"signed": func(h *harness.Harness) func(string, int) (harness.Answer, error) {
		h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', 'key', 'webhook', 'env:CRASH_KEY')`)
		h.Exec(`update autopost.workspace_endpoints set signing_ref = 'key'`)
		var attempt atomic.Int64
		return func(url string, n int) (harness.Answer, error) {
			return h.TrySigned(url, harness.Signed{
				Path: "news/cms", ID: fmt.Sprint("msg-", n), Key: crashKey, At: time.Now(),
				Body: harness.Post("text", fmt.Sprintf("Post %d, attempt %d", n, attempt.Add(1))),
			})
		}
	},
}

// The daemon is killed while pushes are before their receipt, inside their transaction, committed but not
// answered, and at random. The sources repeat: no acknowledged post is lost, and no post arrives twice.
func TestKilledAtAnEndpoint(t *testing.T) {
	t.Parallel()
	for name, endpoint := range endpoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedAtAnEndpoint(t, endpoint)
		})
	}
}

func killedAtAnEndpoint(t *testing.T, endpoint func(*harness.Harness) func(string, int) (harness.Answer, error)) {
	const channels, perRound = 4, 16
	h := harness.New(t)
	station(h, channels, harness.Channel{Parallel: 2})
	send := endpoint(h)
	// The workspace is paused, so no outcome becomes unknown during the kills.
	h.Exec(`update autopost.workspaces set status = 'paused'`)
	random := rand.New(rand.NewPCG(seed, 3))
	holder := h.Session("holder", "")
	d := h.Serve("CRASH_KEY=" + crashKey)
	s := newSource(h, d)
	s.send = send
	rounds, repeats, most := 0, 0, len(points)+2
	if pgtest.Long() {
		most = 300
	}
	for until := pgtest.Until(time.Minute); rounds < most && time.Now().Before(until); rounds++ {
		first := rounds * perRound
		one := s.pushAll(t.Context(), first, first+perRound/2)
		acked := func(at int) {
			h.Until("some are acknowledged", func() bool { return s.acknowledged() >= at })
		}
		acked(first + random.IntN(perRound/2))
		before := s.count(200)
		var two <-chan struct{}
		come := func() { two = s.pushAll(t.Context(), first+perRound/2, first+perRound) }
		if n := rounds % (len(points) + 1); n < len(points) {
			points[n].kill(h, holder, d, come)
		} else {
			come()
			acked(first + random.IntN(perRound))
			d.Kill()
		}
		d = h.Serve("CRASH_KEY=" + crashKey)
		s.url.Store(&d.URL)
		s.wait(one)
		s.wait(two)
		if n := rounds % (len(points) + 1); n < len(points) && !points[n].lost {
			require.Greater(t, s.count(200), before, "a committed post is answered as a repeat")
			repeats++
		}
	}
	posts := rounds * perRound
	t.Logf("seed %d: %d posts, %d kills, answers %v", seed, posts, rounds, s.answers)
	require.Positive(t, repeats)
	for status := range s.answers {
		require.Contains(t, []int{0, 200, 202, 503}, status)
	}
	s.conserved(t, posts, channels)
	h.Exec(`update autopost.workspaces set status = 'active'`)
	h.UntilTrue(`select count(*) < 100 from autopost.deliveries where status = 'queued'`)
	h.Drained("news")
	require.Equal(t, harness.Totals{Deliveries: posts * channels, Sent: posts * channels}, h.Judge("news"))
	require.Len(t, h.Sends(), posts*channels, "no call was repeated")
	require.Zero(t, d.Stop())
	h.Verified()
}

// count returns how often the source got a status.
func (s *source) count(status int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[status]
}
