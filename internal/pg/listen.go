package pg

import (
	"context"
	"fmt"
	"log/slog"
	neturl "net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"autopost/internal/worker"
)

// Wakeups are the channels that wake the stages. Each holds one hint; a hint may be lost, and it may be wrong.
type Wakeups struct {
	// Deliveries: a gate is open, or will open soon.
	Deliveries chan struct{}
	// PostChanges: a post change is due.
	PostChanges chan struct{}
	// Submissions: a submission waits for its media.
	Submissions chan struct{}
	// Fanout: a fan-out job waits.
	Fanout chan struct{}
	// Recurrences: a rule must be expanded, or an occurrence is due.
	Recurrences chan struct{}
	// Sources: a source is due.
	Sources chan struct{}
	// Files: a folder is due, or a file job has work.
	Files chan struct{}
	// Webhooks: there are events for result webhooks, or due calls.
	Webhooks chan struct{}
	// Leases: a lease has expired, or its holder is silent.
	Leases chan struct{}
	// Alerts: a notice is due.
	Alerts chan struct{}
	// Streams: something changed, whatever it is.
	Streams chan struct{}
	// Moderation: a call to a moderators' chat is due.
	Moderation chan struct{}
	// Bot: a message of a bot is due, or a received one waits.
	Bot chan struct{}
}

// NewWakeups makes the channels.
func NewWakeups() Wakeups {
	one := func() chan struct{} { return make(chan struct{}, 1) }
	return Wakeups{
		Deliveries: one(), PostChanges: one(), Submissions: one(), Fanout: one(), Recurrences: one(), Sources: one(), Files: one(), Webhooks: one(), Leases: one(), Alerts: one(), Streams: one(), Moderation: one(), Bot: one(),
	}
}

// named returns the channel for a stage name of the database; nil if this program does not know it.
func (w Wakeups) named(name string) chan struct{} {
	switch name {
	case "deliveries":
		return w.Deliveries
	case "acts":
		return w.PostChanges
	case "submissions":
		return w.Submissions
	case "fanout":
		return w.Fanout
	case "recurrences":
		return w.Recurrences
	case "sources":
		return w.Sources
	case "files":
		return w.Files
	case "results":
		return w.Webhooks
	case "leases":
		return w.Leases
	case "alerts":
		return w.Alerts
	case "moderation":
		return w.Moderation
	case "bot":
		return w.Bot
	}
	return nil
}

func (w Wakeups) wakeAll() {
	for _, c := range []chan struct{}{w.Deliveries, w.PostChanges, w.Submissions, w.Fanout, w.Recurrences, w.Sources, w.Files, w.Webhooks, w.Leases, w.Alerts, w.Streams, w.Moderation, w.Bot} {
		worker.Wake(c)
	}
}

// Listen receives NOTIFY autopost_wake on its own connection and wakes the stages until ctx ends. url must not lead
// through a pooler. After each connect it wakes all stages, because it may have missed notifications.
//
// On a cluster a function notifies on the node of its workspace. So Listen also connects to the other workers, as the
// user of url. It wakes the stages for them if url leads to the coordinator, and the streams alone if it leads to a
// worker, whose daemon serves no other node.
func Listen(ctx context.Context, url string, wakeups Wakeups, log *slog.Logger) error {
	heard := func(stage string) {
		worker.Wake(wakeups.named(stage))
		worker.Wake(wakeups.Streams)
	}
	return keepListening(ctx, url, log, func(ctx context.Context, conn *pgx.Conn) error {
		nodes, err := otherWorkers(ctx, conn)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		var others sync.WaitGroup
		defer others.Wait()
		defer cancel()
		for _, node := range nodes {
			others.Go(worker.Task(ctx, func() {
				log := log.With("node", fmt.Sprintf("%s:%d", node.Host, node.Port))
				_ = keepListening(ctx, atNode(url, node.Host, node.Port), log, func(ctx context.Context, conn *pgx.Conn) error {
					if !node.Served {
						return hear(ctx, conn, func(string) { worker.Wake(wakeups.Streams) })
					}
					wakeups.wakeAll()
					return hear(ctx, conn, heard)
				})
			}))
		}
		wakeups.wakeAll()
		return hear(ctx, conn, heard)
	})
}

// keepListening connects, listens, and runs use, again after each failure, until ctx ends. It returns nil.
func keepListening(ctx context.Context, url string, log *slog.Logger, use func(context.Context, *pgx.Conn) error) error {
	backoff := worker.Backoff{Least: 100 * time.Millisecond, Most: 5 * time.Second}
	for failures := 0; ; failures++ {
		began := time.Now()
		err := listenOnce(ctx, url, use)
		if time.Since(began) > backoff.Most { // the connection worked for a while
			failures = 0
		}
		pause := backoff.Pause(failures)
		if ctx.Err() == nil {
			log.Warn("database.listen_lost", "error", err, "retry_in", pause)
		}
		if !worker.Sleep(ctx, pause) {
			return nil
		}
	}
}

func listenOnce(ctx context.Context, url string, use func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `listen autopost_wake`); err != nil {
		return err
	}
	return use(ctx, conn)
}

// hear gives each notification to heard until the connection is lost or ctx ends.
func hear(ctx context.Context, conn *pgx.Conn, heard func(stage string)) error {
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		heard(notification.Payload)
	}
}

// node is another worker of a cluster. Served is true if the daemon serves its workspaces.
type node struct {
	Host   string
	Port   int
	Served bool
}

// otherWorkers returns the other nodes with workspaces; none if the database is not a cluster.
func otherWorkers(ctx context.Context, conn *pgx.Conn) ([]node, error) {
	var clustered bool
	if err := conn.QueryRow(ctx, `select exists (select 1 from pg_extension e where e.extname = 'citus')`).Scan(&clustered); err != nil || !clustered {
		return nil, err
	}
	rows, err := conn.Query(ctx, `select n.nodename, n.nodeport, not here.shouldhaveshards
		from pg_dist_node n join pg_dist_local_group l on l.groupid <> n.groupid join pg_dist_node here on here.groupid = l.groupid
		where n.shouldhaveshards and n.noderole = 'primary' and here.noderole = 'primary'`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[node])
}

// atNode returns the address of a node for the user of url.
func atNode(url, host string, port int) string {
	at, err := neturl.Parse(url)
	if err != nil || at.Scheme == "" { // keywords and values: the last ones count
		return fmt.Sprintf("%s host='%s' port=%d", url, host, port)
	}
	at.Host = ""
	query := at.Query()
	query.Set("host", host)
	query.Set("port", fmt.Sprint(port))
	at.RawQuery = query.Encode()
	return at.String()
}

// dueTimeout bounds one call of due_stages.
const dueTimeout = 10 * time.Second

// DueStages returns the names of the stages with work now, or within the given time.
func (s *Store) DueStages(ctx context.Context, within time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, dueTimeout)
	defer cancel()
	stages, err := s.texts(ctx, `select * from autopost.due_stages($1)`, within.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("due stages: %w", err)
	}
	return stages, nil
}

// Poll asks every period which stages have work, and wakes them, until ctx ends. It covers work that becomes due by
// time, and lost notifications. If the database does not answer, Poll wakes all stages. The first period passes
// first, because each stage begins with a poll of its own.
func Poll(ctx context.Context, store *Store, wakeups Wakeups, period time.Duration, log *slog.Logger) error {
	return worker.Loop{
		Interval: period, Delay: period, Backoff: worker.Backoff{Least: period, Most: period}, Name: "due", Log: log,
		Poll: func(ctx context.Context) (time.Duration, error) {
			stages, err := store.DueStages(ctx, period)
			if err != nil && ctx.Err() == nil {
				wakeups.wakeAll()
			}
			for _, stage := range stages {
				worker.Wake(wakeups.named(stage))
			}
			return 0, err
		},
	}.Run(ctx)
}
