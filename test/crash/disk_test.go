package crash

import (
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

	"autopost/internal/sim"
	"autopost/internal/testing/disktest"
	"autopost/test/harness"
)

// cramped makes an installation whose database is on a small disk and its log on another one. Commits
// are synchronous: an acknowledged post survives a crash of the server.
func cramped(t *testing.T) (h *harness.Harness, data, log *disktest.Disk) {
	data, log = disktest.New(t, 160), disktest.New(t, 96)
	h = harness.New(t, harness.WithOwnServer)
	h.StopServer()
	h.Configure("synchronous_commit=on", "max_wal_size=32MB", "min_wal_size=32MB", "max_connections=40")
	h.Relocate("base", data.Dir)
	h.Relocate("pg_wal", log.Dir)
	h.StartServer()
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	return h, data, log
}

// refused pushes until the daemon answers with an error, and returns this answer.
func refused(h *harness.Harness, d *harness.Daemon, n int) (answer harness.Answer) {
	h.Until("posts are refused", func() bool {
		var err error
		answer, err = h.TryPush(d.URL, "secret-cms", harness.Post("source_ref", fmt.Sprint("cms-", n), "text", fmt.Sprintf("Post %d", n)))
		return err == nil && answer.Status >= 500
	})
	return answer
}

// quiet waits until no platform was called for two seconds. It returns the number of calls until now.
func quiet(h *harness.Harness) int {
	sends, since := len(h.Sends()), time.Now()
	h.Until("nobody is called", func() bool {
		if n := len(h.Sends()); n != sends {
			sends, since = n, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
	return sends
}

// crowd takes every connection of the server, including those of the daemon. The result closes them.
func crowd(t *testing.T, h *harness.Harness) (over func()) {
	config, err := pgx.ParseConfig(h.URL(""))
	require.NoError(t, err)
	config.RuntimeParams["application_name"] = "crowd"
	first, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	crowd := []*pgx.Conn{first}
	alone := 0 // looks at which nobody else had one, and none was to be had
	h.Until("all connections are taken", func() bool {
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

// Under load the database runs out of space for its data, then for its log (the server crashes and is
// started again), then out of connections. Each time sources get an error, no platform is called, and
// sending continues automatically afterwards. No acknowledged post is lost or sent twice.
func TestDatabaseWithoutRoom(t *testing.T) {
	t.Parallel()
	const channels, posts = 4, 40
	h, data, log := cramped(t)
	for n := range channels {
		h.Channel("news", harness.Channel{ID: fmt.Sprint("t", n), Platform: harness.Telegram, Parallel: 4})
	}
	h.Fault(sim.Fault{Effect: sim.EffectSlow, DelayMS: 150})
	d := h.Serve("MONITOR_INTERVAL_SECONDS=1")
	s := newSource(h, d)
	began := time.Now()
	outages := []func() (over func()){
		func() func() {
			data.Fill()
			answer := refused(h, d, 0)
			require.Equal(t, http.StatusInsufficientStorage, answer.Status)
			saysItIsFull(t, h, d, answer)
			return data.Free
		},
		func() func() {
			log.Fill()
			h.Until("the log is full", func() bool {
				return h.Err(`select pg_switch_wal() from pg_logical_emit_message(true, 'disk', 'full')`) != nil
			})
			return func() {
				log.Free()
				h.StartServer() // as a service manager does if the server has stopped
			}
		},
		func() func() { return crowd(t, h) },
	}
	for round, outage := range outages {
		first := round * posts
		sends := len(h.Sends())
		s.wait(s.pushAll(t.Context(), first, first+posts/2))
		h.Until("calls are running", func() bool { return len(h.Sends()) > sends })
		over := outage()
		others := s.pushAll(t.Context(), first+posts/2, first+posts)
		require.Contains(t, []int{503, 507}, refused(h, d, first).Status)
		calls := quiet(h)
		over()
		h.Until("posts flow again", func() bool { return len(h.Sends()) > calls })
		s.wait(others)
		h.Drained("news")
		t.Logf("%s: outage %d, answers to the source so far %v", time.Since(began).Round(100*time.Millisecond), round, s.answers)
	}
	totals := h.Judge("news")
	requireCallsWithinLeases(t, h, "news", 5*time.Minute)
	require.Equal(t, harness.Totals{Deliveries: len(outages) * posts * channels, Sent: len(outages) * posts * channels}, totals, "what came of each call was kept until it could be committed")
	for status := range s.answers {
		require.Contains(t, []int{200, 202, 503, 507}, status)
	}
	require.Positive(t, s.answers[http.StatusInsufficientStorage])
	require.Positive(t, s.answers[http.StatusServiceUnavailable])
	s.conserved(t, len(outages)*posts, channels)
	require.Zero(t, d.Stop())
	h.Verified()
}

// saysItIsFull checks every report of a full disk that does not need the database.
func saysItIsFull(t *testing.T, h *harness.Harness, d *harness.Daemon, answer harness.Answer) {
	t.Helper()
	require.Equal(t, "urn:autopost:problem:no-room", answer.Text("type"))
	require.Contains(t, answer.Text("detail"), "The operator must free disk space")
	require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"))
	require.Equal(t, "30", answer.Header.Get("Retry-After"))
	ready, err := h.Get(d.URL+"/readyz", "")
	require.NoError(t, err)
	require.Equal(t, "Not ready: room.", ready.Text("detail"))
	require.Equal(t, 1, strings.Count(d.Log(), `"msg":"disk.full","disk":"database"`), "one line for an outage")
	require.Positive(t, h.Metrics(d.URL)[`autopost_disk_refusals_total{disk="database"}`])
}

// A daemon ends with its private database, because only a new start brings the database back. The new
// daemon finds all data.
func TestPrivateDatabaseThatEnds(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	private := []string{"DATABASE_URL=", "AUTOPOST_MIGRATE="}
	d := h.Serve(private...)
	require.Zero(t, h.Run(private, "workspace", "add", "kept", "--reason", "test").Code)
	file, err := os.ReadFile(h.Folder("data/pg/data/postmaster.pid"))
	require.NoError(t, err)
	pid, _, _ := strings.Cut(string(file), "\n")
	server, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(server, syscall.SIGQUIT))
	require.True(t, d.Died())
	require.Contains(t, d.Log(), "the private PostgreSQL has ended")
	d = h.Serve(private...)
	require.Contains(t, h.Run(private, "workspace", "list").Stdout, "kept")
	require.Zero(t, d.Stop())
}
