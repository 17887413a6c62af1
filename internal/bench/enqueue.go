package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"autopost/internal/ingest/push"
	"autopost/internal/pg"
)

// leanTable is the smallest table for the rows: a queue needs at least a primary key and
// references.
const leanTable = `
create table bench.lean (like autopost.deliveries including defaults including generated);
alter table bench.lean add primary key (workspace_id, delivery_id),
	add foreign key (workspace_id, channel_id) references autopost.channels (workspace_id, channel_id),
	add foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id);
create unlogged table bench.given (like autopost.deliveries including generated);`

// fanOut is P1: one post to very many channels.
func (b *bench) fanOut(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "fanout")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	if err := base.exec(ctx, leanTable); err != nil {
		return result, err
	}
	const workspace = "fanout"
	if err := base.workspace(ctx, workspace, everyLimit(b.fan)); err != nil {
		return result, err
	}
	pattern, err := base.post(ctx, workspace, text())
	if err != nil {
		return result, err
	}
	var events []float64
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		// After a drain all gates are closed, and the post has to open them.
		if err := base.exec(ctx, `update autopost.channel_gates set ready_at = 'infinity' where workspace_id = $1`, workspace); err != nil {
			return err
		}
		if err := base.exec(ctx, `truncate bench.given`); err != nil {
			return err
		}
		_, err := base.clone(ctx, "bench.given", "deliveries", map[string]string{"delivery_id": `autopost.uuid_v7_of(clock_timestamp(), t.channel_id)`},
			`from autopost.deliveries t where t.workspace_id = $1 and t.message_id = $2 order by t.channel_id`, workspace, pattern)
		return errors.Join(err, base.settle(ctx))
	}, subject{"autopost", "µs/delivery", func(ctx context.Context) (float64, error) {
		body := text()
		began := time.Now()
		message, err := base.post(ctx, workspace, body)
		took := time.Since(began)
		if err != nil {
			return 0, err
		}
		made, err := value[[]float64](ctx, base, `select array[
			(select count(*) from autopost.deliveries d where d.workspace_id = $1 and d.message_id = $2 and d.status = 'queued'),
			(select count(*) from autopost.events e where e.workspace_id = $1 and e.message_id = $2)]::float8[]`, workspace, message)
		if err != nil {
			return 0, err
		}
		if int(made[0]) != b.fan {
			return 0, fmt.Errorf("the post must have %d deliveries, got %v", b.fan, made[0])
		}
		events = append(events, made[1])
		return micros(took, b.fan), nil
	}}, subject{"bare", "µs/row", func(ctx context.Context) (float64, error) {
		began := time.Now()
		_, err := base.clone(ctx, "bench.lean", "deliveries", nil, `from bench.given t`)
		return micros(time.Since(began), b.fan), err
	}})
	if err != nil {
		return result, err
	}
	result.Checks = []Check{atMost(2.3, ratio("autopost / bare insert into PK + 2 FK", samples["autopost"], samples["bare"]))}
	result.Figures = []Figure{
		figure(fmt.Sprintf("one post to %d channels", b.fan), "µs/delivery", samples["autopost"]...),
		figure("the same rows, bare insert", "µs/row", samples["bare"]...),
		figure("written events", "rows", events...),
	}
	result.Notes = []string{"the few events do not change the ratio"}
	return result, nil
}

// history is P2: enqueue and delivery with little and much history. The content was posted
// before, so that the dedup must search.
func (b *bench) history(ctx context.Context) (result Result, err error) {
	databases := []*aged{
		{name: "little history", rows: b.littleHistory},
		{name: "much history", rows: b.muchHistory},
		{name: "much history, not analyzed", rows: b.muchHistory, unknown: true},
	}
	for _, w := range databases {
		if err := w.make(ctx, b); err != nil {
			return result, errors.Join(err, closeAll(ctx, databases))
		}
	}
	defer func() { err = errors.Join(err, closeAll(ctx, databases)) }()
	var subjects []subject
	for _, w := range databases {
		subjects = append(subjects, subject{w.name, "µs/delivery", w.deliver})
	}
	samples, err := b.interleave(ctx, func(ctx context.Context) error {
		for _, w := range databases {
			if err := w.moveOutOfWindow(ctx); err != nil {
				return err
			}
		}
		return nil
	}, subjects...)
	if err != nil {
		return result, err
	}
	little := databases[0]
	for _, w := range databases[1:] {
		result.Checks = append(result.Checks,
			atMost(1.3, ratio(w.name+" / little: time", samples[w.name], samples[little.name])),
			atMost(1.3, ratio(w.name+" / little: buffers", w.buffers, little.buffers)))
	}
	for _, w := range databases {
		result.Figures = append(result.Figures,
			figure(fmt.Sprintf("%s (%s rows)", w.name, thousands(fmt.Sprint(w.rows))), "µs/delivery", samples[w.name]...),
			figure("  buffers", "per delivery", w.buffers...),
			figure("  buffers of the enqueue alone", "per delivery", w.enqueue...))
	}
	return result, nil
}

// aged is a database with a workspace that has history.
type aged struct {
	name string
	rows int
	// unknown means that the statistics do not include the history.
	unknown bool

	base             *base
	queue            *queue
	text             string
	buffers, enqueue []float64
}

func (w *aged) make(ctx context.Context, b *bench) (err error) {
	b.printf("  %s: %s rows", w.name, thousands(fmt.Sprint(w.rows)))
	if w.base, err = b.migrated(ctx, "history"); err != nil {
		return err
	}
	// Autovacuum must not update the statistics in between.
	if err := w.base.exec(ctx, `alter table autopost.deliveries set (autovacuum_enabled = false);
		alter table autopost.messages set (autovacuum_enabled = false); alter table autopost.channels set (autovacuum_enabled = false);
		alter table autopost.channel_gates set (autovacuum_enabled = false)`); err != nil {
		return err
	}
	if w.unknown {
		known, err := b.queue(ctx, w.base, "known", everyLimit(b.channels))
		if err != nil {
			return err
		}
		if _, err := w.base.copies(ctx, known.workspace, known.pattern, max(1, w.rows/b.channels), "true", sentLongAgo); err != nil {
			return err
		}
		if err := w.base.settle(ctx); err != nil {
			return err
		}
	}
	if w.queue, err = b.queue(ctx, w.base, "measured", everyLimit(b.channels)); err != nil {
		return err
	}
	w.text = text()
	if _, err := w.base.copies(ctx, w.queue.workspace, w.queue.pattern, max(1, w.rows/b.channels), "true", sentLongAgo); err != nil {
		return err
	}
	if w.unknown {
		err = w.base.checkpoint(ctx)
	} else {
		err = w.base.settle(ctx)
	}
	if err != nil {
		return err
	}
	_, err = w.deliver(ctx) // the first one fills the caches and makes the content a duplicate
	w.buffers, w.enqueue = nil, nil
	return err
}

// moveOutOfWindow moves sent deliveries out of the dedup window.
func (w *aged) moveOutOfWindow(ctx context.Context) error {
	return w.base.exec(ctx, `update autopost.deliveries set sent_at = now() - interval '200 days'
		where workspace_id = $1 and status = 'sent' and sent_at > now() - interval '199 days'`, w.queue.workspace)
}

// deliver enqueues the content to all channels and delivers it. It returns microseconds per
// delivery.
func (w *aged) deliver(ctx context.Context) (float64, error) {
	enqueue, err := explain(ctx, w.base, `select autopost.enqueue_messages_and_deliveries($1, 'bench', 'api', jsonb_build_object('text', $2::text))`,
		w.queue.workspace, w.text)
	if err != nil {
		return 0, err
	}
	rows := float64(w.queue.shape.channels)
	sum := enqueue
	for left := rows; left > 0; {
		claim, start, commit, err := explainClaim(ctx, w.queue, min(1000, int(left)), false)
		if err != nil {
			return 0, err
		}
		sum = sum.plus(claim).plus(start).plus(commit)
		left -= claim.rows
	}
	w.buffers, w.enqueue = append(w.buffers, sum.buffers/rows), append(w.enqueue, enqueue.buffers/rows)
	return sum.ms * 1000 / rows, nil
}

func closeAll(ctx context.Context, databases []*aged) error {
	var errs []error
	for _, w := range databases {
		if w.base != nil {
			errs = append(errs, w.base.close(ctx))
		}
	}
	return errors.Join(errs...)
}

func micros(took time.Duration, rows int) float64 {
	return float64(took.Microseconds()) / float64(rows)
}

const (
	// pushChannels is the number of channels of each post.
	pushChannels = 40
	// senders is the number of concurrent clients.
	senders = 8
)

// bareHandler inserts the body of a request as one row.
type bareHandler struct{ pool *pgxpool.Pool }

func (d bareHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = d.pool.Exec(r.Context(), `insert into bench.posts (workspace_id, payload) values ('ingress', $1)`, json.RawMessage(body))
	}
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// ingress measures pushed posts from the request to the answer, which follows the commit.
func (b *bench) ingress(ctx context.Context) (result Result, err error) {
	base, err := b.migrated(ctx, "ingress")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	const workspace = "ingress"
	if err := base.workspace(ctx, workspace, everyLimit(pushChannels)); err != nil {
		return result, err
	}
	if err := base.exec(ctx, `update autopost.workspace_endpoints set ingress_rps = 1000000`); err != nil {
		return result, err
	}
	if err := base.exec(ctx, `create table bench.posts (workspace_id text not null, post_id uuid not null default autopost.new_id(),
		received_at timestamptz not null default now(), payload jsonb not null, primary key (workspace_id, post_id))`); err != nil {
		return result, err
	}
	store, err := pg.Open(ctx, pg.Options{URL: b.at(base.name), MaxConns: senders})
	if err != nil {
		return result, err
	}
	defer store.Close()
	bare, err := base.pool(ctx, "autopost_owner")
	if err != nil {
		return result, err
	}
	defer bare.Close()
	posts := max(2*senders, b.drain/pushChannels)
	waits := map[string][]float64{}
	pushed := func(name string, handler http.Handler) subject {
		return subject{name, "posts/s", func(ctx context.Context) (float64, error) {
			took, answers, err := sendAll(ctx, handler, workspace, posts)
			if err != nil {
				return 0, err
			}
			slices.Sort(answers)
			waits[name] = append(waits[name], answers[len(answers)*99/100].Seconds()*1000)
			return float64(posts) / took.Seconds(), nil
		}}
	}
	samples, err := b.interleave(ctx, base.settle,
		pushed("autopost", push.New(store, slog.New(slog.DiscardHandler))), pushed("bare", bareHandler{bare}))
	if err != nil {
		return result, err
	}
	made, err := value[int](ctx, base, `select count(*)::int from autopost.deliveries where workspace_id = $1 and status = 'queued'`, workspace)
	if want := posts * pushChannels * b.rounds; err != nil || made != want {
		return result, errors.Join(err, fmt.Errorf("%d deliveries must wait, got %d", want, made))
	}
	// The bound only detects a breakdown: most of the work for a post depends on its channels.
	result.Checks = []Check{atLeast(0.01, ratio("autopost / bare insert of the body", samples["autopost"], samples["bare"]))}
	result.Figures = []Figure{
		figure(fmt.Sprintf("posts accepted, each for %d channels", pushChannels), "posts/s", samples["autopost"]...),
		figure("  p99 of the answer", "ms", waits["autopost"]...),
		figure("bodies, bare insert", "posts/s", samples["bare"]...),
		figure("  p99 of the answer", "ms", waits["bare"]...),
	}
	result.Notes = []string{fmt.Sprintf("%d clients over loopback; a post writes guard, run, receipt, message, %d deliveries and their gates", senders, pushChannels)}
	return result, nil
}

// sendAll pushes posts with all senders. It returns the total duration and the time to each
// answer.
func sendAll(ctx context.Context, handler http.Handler, secret string, posts int) (took time.Duration, answers []time.Duration, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with Close
	transport := &http.Transport{MaxIdleConnsPerHost: senders}
	defer func() {
		transport.CloseIdleConnections()
		err = errors.Join(err, server.Close())
	}()
	client := &http.Client{Transport: transport}
	answers = make([]time.Duration, posts)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for n := range senders {
		group.Go(func() error {
			for i := n; i < posts; i += senders {
				start := time.Now()
				if err := sendOne(ctx, client, "http://"+listener.Addr().String(), secret, text()); err != nil {
					return err
				}
				answers[i] = time.Since(start)
			}
			return nil
		})
	}
	err = group.Wait()
	return time.Since(began), answers, err
}

func sendOne(ctx context.Context, client *http.Client, url, secret, text string) error {
	mark := lastPost.Add(1)
	body, err := json.Marshal(map[string]any{"text": text, "parse_mode": "HTML", "source_ref": fmt.Sprint("bench-", mark)})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("the endpoint answered %d: %.200s", response.StatusCode, answer)
	}
	return err
}
