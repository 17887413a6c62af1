package crash

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/test/house"
)

// point is where the daemon is killed: held there by a row that the test has locked.
type point struct {
	name string
	// row is what the call waits for, waits how its query looks.
	row, waits string
	// lost says that the server's side dies, too: what it had begun is undone. Else the
	// call ends and commits, with nobody there to be told.
	lost bool
}

var points = []point{
	{"before the receipt", `autopost.workspace_endpoints`, `%guard_ingress%`, true},
	{"inside the transaction", `autopost.channel_gates`, `%receive_%push%`, true},
	{"committed, before the answer", `autopost.channel_gates`, `%receive_%push%`, false},
}

// kill has pushes come to the point, kills the daemon, and lets go.
func (p point) kill(h *house.House, holder *pgtest.Session, d *house.Daemon, come func()) {
	const calls = `from pg_stat_activity where datname = current_database() and query like $1 and state = 'active'`
	holder.Exec(`begin`)
	holder.Exec(`select 1 from ` + p.row + ` for update`)
	come()
	h.UntilTrue(30*time.Second, `select count(*) > 1 `+calls+` and wait_event_type = 'Lock'`, p.waits)
	d.Kill()
	if p.lost {
		h.UntilTrue(30*time.Second, `select count(pg_terminate_backend(pid)) = 0 `+calls, p.waits)
	}
	holder.Exec(`commit`)
	h.UntilTrue(30*time.Second, `select count(*) = 0 `+calls, p.waits)
}

const crashKey = "whsec_Y3Jhc2gtY2FuYXJ5LXNpZ25pbmcta2V5"

// doors are the two ways in, each with what makes a repeat one: a source_ref, or the
// id that was signed. A signed post has another text at every attempt, so that
// nothing but its id can tell.
var doors = map[string]func(*house.House) func(string, int) (house.Answer, error){
	"by secret": func(h *house.House) func(string, int) (house.Answer, error) {
		return newSource(h, &house.Daemon{}).send
	},
	"signed": func(h *house.House) func(string, int) (house.Answer, error) {
		h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', 'key', 'webhook', 'env:CRASH_KEY')`)
		h.Exec(`update autopost.workspace_endpoints set signing_ref = 'key'`)
		var attempt atomic.Int64
		return func(url string, n int) (house.Answer, error) {
			return h.TrySigned(url, house.Signed{
				Path: "news/cms", ID: fmt.Sprint("msg-", n), Key: crashKey, At: time.Now(),
				Body: house.Post("text", fmt.Sprintf("Post %d, attempt %d", n, attempt.Add(1))),
			})
		}
	},
}

// The daemon is killed with pushes before their receipt, inside their transaction,
// committed and not yet answered, and in between wherever it happens to be. The
// sources try again until they are told: nothing that was acknowledged is lost, and
// nothing arrives twice.
func TestKilledAtTheDoor(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedAtTheDoor(t, door)
		})
	}
}

func killedAtTheDoor(t *testing.T, door func(*house.House) func(string, int) (house.Answer, error)) {
	const channels, perRound = 4, 16
	h := house.New(t)
	station(h, channels, house.Channel{Parallel: 2})
	send := door(h)
	// Nothing is sent meanwhile: what arrives in the end arrives without any doubt of its own.
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
			h.Until("some are acknowledged", 30*time.Second, func() bool { return s.acknowledged() >= at })
		}
		acked(first + random.IntN(perRound/2))
		before := s.told(200)
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
			require.Greater(t, s.told(200), before, "what had been committed was told as a repeat")
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
	h.UntilTrue(time.Minute+time.Duration(posts)*200*time.Millisecond, `select count(*) < 100 from autopost.deliveries where status = 'queued'`)
	h.Drained("news")
	require.Equal(t, house.Toll{Deliveries: posts * channels, Sent: posts * channels}, h.Judge("news"))
	require.Len(t, h.Sends(), posts*channels, "nothing was even tried twice")
	require.Zero(t, d.Stop())
	h.Verified()
}

// told counts how often the source was answered with a status.
func (s *source) told(status int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[status]
}
