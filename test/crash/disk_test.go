package crash

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"autopost/internal/disktest"
	"autopost/internal/sim"
	"autopost/test/house"
)

// cramped is a house whose database lies on a small disk, and its log on another one.
// A commit is in the log before it is answered: what was acknowledged survives a server that falls over.
func cramped(t *testing.T) (h *house.House, data, log *disktest.Disk) {
	data, log = disktest.New(t, 160), disktest.New(t, 96)
	h = house.New(t, house.WithItsOwnServer)
	h.StopServer()
	h.Configure("synchronous_commit=on", "max_wal_size=32MB", "min_wal_size=32MB", "max_connections=40")
	h.Relocate("base", data.Dir)
	h.Relocate("pg_wal", log.Dir)
	h.StartServer()
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	return h, data, log
}

// refused pushes until the source is told to come again, and returns what it was told.
func refused(h *house.House, d *house.Daemon, n int) (answer house.Answer) {
	h.Until("posts are refused", 30*time.Second, func() bool {
		var err error
		answer, err = h.TryPush(d.URL, "secret-cms", house.Post("source_ref", fmt.Sprint("cms-", n), "text", fmt.Sprintf("Post %d", n)))
		return err == nil && answer.Status >= 500
	})
	return answer
}

// quiet waits until nobody has been called for two seconds, and returns how often anybody was.
func quiet(h *house.House) int {
	sends, since := len(h.Sends()), time.Now()
	h.Until("nobody is called", 30*time.Second, func() bool {
		if n := len(h.Sends()); n != sends {
			sends, since = n, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
	return sends
}

// crowd takes every connection that the server has, the daemon's included, and returns what gives them back.
func crowd(t *testing.T, h *house.House) (over func()) {
	config, err := pgx.ParseConfig(h.URL(""))
	require.NoError(t, err)
	config.RuntimeParams["application_name"] = "crowd"
	first, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	crowd := []*pgx.Conn{first}
	alone := 0 // looks at which nobody else had one, and none was to be had
	h.Until("all connections are taken", 30*time.Second, func() bool {
		held := len(crowd)
		for {
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				break
			}
			crowd = append(crowd, conn)
		}
		var others int
		require.NoError(t, first.QueryRow(t.Context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity
			where datname = current_database() and application_name not in ('crowd', 'pgtest')`).Scan(&others))
		if alone++; others > 0 || len(crowd) > held {
			alone = 0
		}
		return alone == 3
	})
	return func() {
		for _, conn := range crowd {
			require.NoError(t, conn.Close(t.Context()))
		}
	}
}

// The database finds no room under load: first for its data, then for its log, over which
// it falls and has to be started again, then for another connection. Each time sources are told to
// come again, nobody is called, and all goes on by itself when there is room. Nothing that was
// acknowledged is lost, and nothing goes out twice.
func TestDatabaseWithoutRoom(t *testing.T) {
	t.Parallel()
	const channels, posts = 4, 40
	h, data, log := cramped(t)
	for n := range channels {
		h.Channel("news", house.Channel{ID: fmt.Sprint("t", n), Platform: house.Telegram, Parallel: 4})
	}
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 150})
	d := h.Serve("MONITOR_INTERVAL_SECONDS=1")
	s := newSource(h, d)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	outages := []func() (over func()){
		func() func() {
			data.Fill()
			told := refused(h, d, 0)
			require.Equal(t, http.StatusInsufficientStorage, told.Status)
			saysItIsFull(t, h, d, told)
			return data.Free
		},
		func() func() {
			log.Fill()
			h.Until("the log is full", 30*time.Second, func() bool {
				return h.Err(`select pg_switch_wal() from pg_logical_emit_message(true, 'disk', 'full')`) != nil
			})
			return func() {
				log.Free()
				h.StartServer() // as whoever looks after it does, if it has given up
			}
		},
		func() func() { return crowd(t, h) },
	}
	for round, outage := range outages {
		first := round * posts
		sends := len(h.Sends())
		s.wait(s.pushAll(ctx, first, first+posts/2))
		h.Until("calls are under way", 30*time.Second, func() bool { return len(h.Sends()) > sends })
		over := outage()
		others := s.pushAll(ctx, first+posts/2, first+posts)
		require.Contains(t, []int{503, 507}, refused(h, d, first).Status)
		calls := quiet(h)
		over()
		h.Until("posts flow again", 30*time.Second, func() bool { return len(h.Sends()) > calls })
		s.wait(others)
		h.Drained("news")
		t.Logf("%s: outage %d, answers to the source so far %v", time.Since(began).Round(100*time.Millisecond), round, s.answers)
	}
	toll := h.Judge("news")
	nobodyCallsAfterItsLease(t, h, "news", 5*time.Minute)
	require.Equal(t, house.Toll{Deliveries: len(outages) * posts * channels, Sent: len(outages) * posts * channels}, toll, "what came of each call was kept until it could be committed")
	for status := range s.answers {
		require.Contains(t, []int{200, 202, 503, 507}, status)
	}
	require.Positive(t, s.answers[http.StatusInsufficientStorage])
	require.Positive(t, s.answers[http.StatusServiceUnavailable])
	s.conserved(t, len(outages)*posts, channels)
	require.Zero(t, d.Stop())
	h.Verified()
}

// saysItIsFull fails the test unless everything that tells of a full disk without the database does.
func saysItIsFull(t *testing.T, h *house.House, d *house.Daemon, told house.Answer) {
	t.Helper()
	require.Equal(t, "urn:autopost:problem:no-room", told.Text("type"))
	require.Contains(t, told.Text("detail"), "Its operator has to make room")
	require.Equal(t, "application/problem+json", told.Header.Get("Content-Type"))
	require.Equal(t, "30", told.Header.Get("Retry-After"))
	ready, err := h.Get(d.URL+"/readyz", "")
	require.NoError(t, err)
	require.Equal(t, "Not ready: room.", ready.Text("detail"))
	require.Equal(t, 1, strings.Count(d.Log(), `"msg":"disk.full","disk":"database"`), "one line for an outage")
	require.Positive(t, h.Metrics(d.URL)[`autopost_disk_refusals_total{disk="database"}`])
}

// A daemon does not outlive its private database, which nobody else would start again:
// it ends, is started anew by whoever looks after it, and has what was there.
func TestPrivateDatabaseThatEnds(t *testing.T) {
	t.Parallel()
	h := house.New(t)
	private := []string{"DATABASE_URL=", "AUTOPOST_MIGRATE="}
	d := h.Serve(private...)
	require.Zero(t, h.Run(private, "workspace", "add", "kept", "--reason", "test").Code)
	file, err := os.ReadFile(h.Folder("data/pg/data/postmaster.pid"))
	require.NoError(t, err)
	pid, _, _ := strings.Cut(string(file), "\n")
	server, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(server, syscall.SIGQUIT))
	require.True(t, d.Died(time.Minute))
	require.Contains(t, d.Log(), "the private PostgreSQL has ended")
	d = h.Serve(private...)
	require.Contains(t, h.Run(private, "workspace", "list").Stdout, "kept")
	require.Zero(t, d.Stop())
}
