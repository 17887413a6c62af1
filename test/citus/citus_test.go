//go:build citus

package citus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"autopost/internal/pg"
	"autopost/internal/sim"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// beside returns the variables of a daemon that is connected to a node.
func beside(h *harness.Harness, node int) []string {
	return []string{"DATABASE_URL=" + h.NodeURL(node, "") + "&pool_max_conns=4", "AUTOPOST_COORDINATOR_URL=" + h.URL(""), "MONITOR_INTERVAL_SECONDS=2"}
}

// perNode is the number of workspaces on each worker.
const perNode = 2

// installation is a harness with workspaces on both workers.
type installation struct {
	*harness.Harness

	t     *testing.T
	nodes map[string]int // workspace to its node
	chats map[string]string
	mu    sync.Mutex
	// accepted has the texts that the program has accepted, with their workspace.
	accepted map[string]string
	posted   int
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{Harness: harness.New(t), t: t, nodes: map[string]int{}, chats: map[string]string{}, accepted: map[string]string{}}
	require.True(t, i.OnCluster(), "make test-citus sets AUTOPOST_TEST_CITUS")
	counts := map[int]int{}
	for n := 0; counts[1] < perNode || counts[2] < perNode; n++ {
		name := fmt.Sprintf("site-%d", n)
		node := i.nodeOf(name)
		if counts[node] == perNode {
			continue
		}
		counts[node]++
		i.Workspace(name)
		i.Endpoint(name, "cms", "secret-"+name)
		i.nodes[name] = node
		i.chats[name] = i.Channel(name, harness.Channel{ID: "channel", Platform: harness.Telegram, Group: "group-" + name, Parallel: 4})
	}
	return i
}

// nodeOf returns the number of the node that has a workspace.
func (i *installation) nodeOf(workspace string) int {
	i.t.Helper()
	return pgtest.Value[int](i.DB, `select p.groupid::int from pg_dist_placement p
		where p.shardid = get_shard_id_for_distribution_column('autopost.workspaces', $1::text)`, workspace)
}

// on returns the workspaces of a node.
func (i *installation) on(node int) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(i.nodes)), func(w string) bool { return i.nodes[w] != node })
}

// post sends one post to a workspace through a daemon, and notes it if the program accepts it. It returns the text of
// an accepted post, else "". Any goroutine may call it.
func (i *installation) post(url, workspace string) string {
	i.mu.Lock()
	i.posted++
	text := fmt.Sprintf("post %d of %s", i.posted, workspace)
	i.mu.Unlock()
	answer, err := i.TryPush(url, "secret-"+workspace, harness.Post("source_ref", text, "text", text))
	if err != nil || answer.Status != 202 {
		return ""
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.accepted[text] = workspace
	return text
}

// arrived returns how many accepted posts of a workspace its chat has.
func (i *installation) arrived(workspace string) (arrived, accepted int) {
	held := map[string]bool{}
	for _, e := range i.Accepted(sim.Filter{Chat: i.chats[workspace]}) {
		held[e.Text] = true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for text, of := range i.accepted {
		if of == workspace {
			accepted++
			if held[text] {
				arrived++
			}
		}
	}
	return arrived, accepted
}

// untilArrived waits until the chats of the workspaces have all accepted posts.
func (i *installation) untilArrived(workspaces []string) {
	i.t.Helper()
	wait.Until(i.t, "all accepted posts arrive", func() bool {
		return !slices.ContainsFunc(workspaces, func(w string) bool {
			arrived, accepted := i.arrived(w)
			return arrived < accepted
		})
	}, func() string {
		var lines []string
		for _, w := range workspaces {
			arrived, accepted := i.arrived(w)
			lines = append(lines, fmt.Sprintf("%s on node %d: %d of %d", w, i.nodes[w], arrived, accepted))
		}
		return strings.Join(lines, "\n")
	})
}

// load posts to all workspaces through the daemons until the returned function is called.
func (i *installation) load(daemons ...*harness.Daemon) (stop func()) {
	over := make(chan struct{})
	var all sync.WaitGroup
	for n, w := range slices.Sorted(maps.Keys(i.nodes)) {
		all.Go(func() {
			pace := time.NewTicker(100 * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-over:
					return
				case <-pace.C:
					i.post(daemons[n%len(daemons)].URL, w)
				}
			}
		})
	}
	return func() { close(over); all.Wait() }
}

// judged checks that each accepted post arrived once, or as often as unknown outcomes allow, and that verify finds nothing.
func (i *installation) judged() {
	i.t.Helper()
	i.untilArrived(slices.Sorted(maps.Keys(i.nodes)))
	for w := range i.nodes {
		i.Drained(w)
	}
	for text, copies := range i.Copies() {
		unknown := pgtest.Value[int](i.DB, `select coalesce(max(d.unknown_outcomes), 0)::int from autopost.deliveries d
			join autopost.messages m on m.workspace_id = d.workspace_id and m.message_id = d.message_id
			where d.workspace_id = $1 and m.payload ->> 'text' = $2`, i.accepted[text.Text], text.Text)
		require.LessOrEqual(i.t, copies, 1+unknown, text.Text)
	}
	i.Verified()
}

// goesOn posts to the workspaces until one post of each is accepted, and waits until these arrive. It returns how long
// that took. Other posts, which load sends meanwhile, do not count: there are always some on their way.
func (i *installation) goesOn(d *harness.Daemon, workspaces []string) time.Duration {
	i.t.Helper()
	began := time.Now()
	texts := map[string]string{}
	for _, w := range workspaces {
		wait.Until(i.t, w+" accepts a post", func() bool {
			text := i.post(d.URL, w)
			if text != "" {
				texts[w] = text
			}
			return text != ""
		})
	}
	wait.Until(i.t, "the posts arrive", func() bool {
		return !slices.ContainsFunc(workspaces, func(w string) bool {
			return !slices.ContainsFunc(i.Accepted(sim.Filter{Chat: i.chats[w]}), func(e sim.Entry) bool { return e.Text == texts[w] })
		})
	})
	return time.Since(began)
}

// longestPause is how long the workspaces of a living node may wait after another node died.
const longestPause = 10 * time.Second

// TestWakeUpsOfOtherNodesAreHeard listens at each node: a change on any worker wakes the streams, and one on another
// worker wakes the stages at the coordinator alone.
func TestWakeUpsOfOtherNodesAreHeard(t *testing.T) {
	i := newInstallation(t)
	for node := range 3 {
		wakeups := pg.NewWakeups()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- pg.Listen(ctx, i.NodeURL(node, "engine"), wakeups, slog.New(slog.DiscardHandler)) }()
		<-wakeups.Bot // it is connected: everything is awake once
		others := []int{1, 2}
		if node == 1 {
			others = []int{2, 1} // its own repeated notifications come last
		}
		for _, at := range others {
			stage, woken := "deliveries", wakeups.Deliveries
			if at == 2 {
				stage, woken = "submissions", wakeups.Submissions
			}
			served := node == 0 || node == at
			drain(woken, wakeups.Streams)
			wait.Until(t, fmt.Sprintf("node %d hears node %d", node, at), func() bool {
				i.DB.OnNode(at).Exec(`select pg_notify('autopost_wake', $1)`, stage)
				return len(wakeups.Streams) > 0 && (len(woken) > 0 || !served)
			})
			require.Equal(t, served, len(woken) > 0, "node %d wakes its stages for node %d", node, at)
		}
		cancel()
		require.NoError(t, <-ended)
	}
}

func drain(hints ...chan struct{}) {
	for _, hint := range hints {
		select {
		case <-hint:
		default:
		}
	}
}

func TestDaemonsBesideWorkersServeTheirOwnWorkspaces(t *testing.T) {
	i := newInstallation(t)
	first, second := i.Serve(beside(i.Harness, 1)...), i.Serve(beside(i.Harness, 2)...)
	for w := range i.nodes {
		for range 5 {
			require.NotEmpty(t, i.post(first.URL, w), "any node is an entry")
			require.NotEmpty(t, i.post(second.URL, w), "any node is an entry")
		}
	}
	i.judged()
	for node, d := range map[int]*harness.Daemon{1: first, 2: second} {
		require.Len(t, pgtest.Column[string](i.OnNode(node), `select r.run_id from autopost.dispatch_runs r`), 1, "each node knows its own daemon")
		for line := range strings.Lines(d.Log()) {
			var attempt struct {
				Msg       string
				Workspace string `json:"workspace_id"`
			}
			if json.Unmarshal([]byte(line), &attempt) == nil && attempt.Msg == "delivery.attempted" {
				require.Equal(t, node, i.nodes[attempt.Workspace], line)
			}
		}
	}
	require.Len(t, pgtest.Column[string](i.DB, `select d.run_id from autopost.list_daemons() d where d.alive`), 2)
}

func TestAWorkerDiesUnderLoad(t *testing.T) {
	i := newInstallation(t)
	first, second := i.Serve(beside(i.Harness, 1)...), i.Serve(beside(i.Harness, 2)...)
	stop := i.load(first, second)
	i.Until("posts arrive on both nodes", func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(i.nodes)), func(w string) bool { n, _ := i.arrived(w); return n < 3 })
	})
	i.KillNode(2)
	pause := i.goesOn(first, i.on(1))
	t.Logf("workspaces of the other node went on after %s", pause.Round(10*time.Millisecond))
	require.Less(t, pause, longestPause)
	i.StartNodes()
	i.goesOn(second, i.on(2))
	stop()
	i.judged()
}

func TestADaemonAtTheCoordinatorGoesOnWithoutAWorker(t *testing.T) {
	i := newInstallation(t)
	d := i.Serve(beside(i.Harness, 0)...)
	stop := i.load(d)
	i.Until("posts arrive on both nodes", func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(i.nodes)), func(w string) bool { n, _ := i.arrived(w); return n < 3 })
	})
	i.KillNode(2)
	pause := i.goesOn(d, i.on(1))
	t.Logf("workspaces of the other node went on after %s", pause.Round(10*time.Millisecond))
	require.Less(t, pause, longestPause)
	i.StartNodes()
	i.goesOn(d, i.on(2))
	stop()
	i.judged()
}

func TestTheCoordinatorDiesUnderLoad(t *testing.T) {
	i := newInstallation(t)
	first, second := i.Serve(beside(i.Harness, 1)...), i.Serve(beside(i.Harness, 2)...)
	stop := i.load(first, second)
	i.Until("posts arrive on both nodes", func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(i.nodes)), func(w string) bool { n, _ := i.arrived(w); return n < 3 })
	})
	i.KillNode(0)
	pause := max(i.goesOn(first, i.on(1)), i.goesOn(second, i.on(2)))
	t.Logf("all workspaces went on after %s", pause.Round(10*time.Millisecond))
	require.Less(t, pause, longestPause)
	i.StartNodes()
	stop()
	i.judged()
}

func TestAShardMovesUnderLoad(t *testing.T) {
	i := newInstallation(t)
	first, second := i.Serve(beside(i.Harness, 1)...), i.Serve(beside(i.Harness, 2)...)
	stop := i.load(first, second)
	moved := i.on(1)[0]
	i.Until("posts arrive", func() bool { n, _ := i.arrived(moved); return n > 3 })
	tries := 0
	wait.Until(t, "the shard moves", func() bool {
		tries++
		err := i.Err(`select citus_move_shard_placement(s.shardid, f.nodename, f.nodeport, t.nodename, t.nodeport, 'block_writes')
			from (select get_shard_id_for_distribution_column('autopost.workspaces', $1::text) as shardid) s
			join pg_dist_placement p on p.shardid = s.shardid
			join pg_dist_node f on f.groupid = p.groupid
			join pg_dist_node t on t.groupid = 2`, moved)
		// A running call may hold rows of a table that the move locks later: Citus ends one of them (docs/operate/scale.md).
		if deadlock := new(pgconn.PgError); errors.As(err, &deadlock) && deadlock.Code == "40P01" {
			return false
		}
		require.NoError(t, err)
		return true
	})
	t.Logf("the shard moved with try %d", tries)
	require.Equal(t, 2, i.nodeOf(moved))
	i.goesOn(first, []string{moved})
	stop()
	i.judged()
}

func TestDoctorKnowsTheCluster(t *testing.T) {
	i := newInstallation(t)
	i.Exec(`create function autopost.unlisted(p_workspace_id text) returns int language plpgsql security definer as 'begin return 1; end'`)
	i.OnNode(1).Exec(`do $$ begin execute format('set citus.enable_ddl_propagation = off'); execute format('alter database %I reset citus.enable_unsafe_triggers', current_database()); end $$`)
	found := i.Run(nil, "doctor", "--json")
	for _, expected := range []string{"coordinator of 3 nodes", "all answer", "run on the wrong node: unlisted", "missing: citus.enable_unsafe_triggers on 127.0.0.1:"} {
		require.Contains(t, found.Stdout, expected)
	}
	i.Exec(`drop function autopost.unlisted(text)`)
	require.Zero(t, i.Run([]string{"AUTOPOST_COORDINATOR_URL=" + i.URL("")}, "migrate").Code)
	require.Contains(t, i.Run(nil, "doctor", "--json").Stdout, "set on all nodes")
	refused := i.Run([]string{"DATABASE_URL=" + i.NodeURL(1, "")}, "migrate")
	require.NotZero(t, refused.Code)
	require.Contains(t, refused.Stderr, "AUTOPOST_COORDINATOR_URL")
}
