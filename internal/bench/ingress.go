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

const (
	// pushChannels is how many channels get each post.
	pushChannels = 40
	// senders push at the same time.
	senders = 8
)

// doorStore introduces the store to the door, as the daemon does.
type doorStore struct{ *pg.Store }

func (s doorStore) ResolveEndpoint(ctx context.Context, kind, secretHash string) (*push.Endpoint, error) {
	endpoint, err := s.Store.ResolveEndpoint(ctx, kind, secretHash)
	return (*push.Endpoint)(endpoint), err
}

func (s doorStore) GuardIngress(ctx context.Context, workspace, endpoint string, bytes, items int) (push.Verdict, error) {
	verdict, err := s.Store.GuardIngress(ctx, workspace, endpoint, bytes, items)
	return push.Verdict(verdict), err
}

// bareDoor reads a post and inserts its row: what any webhook that keeps what it is told does.
type bareDoor struct{ pool *pgxpool.Pool }

func (d bareDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// ingress measures the door for posts: from the request to the answer, which is
// given after the commit.
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
	ours, err := pg.Open(ctx, pg.Options{URL: b.at(base.name), MaxConns: senders})
	if err != nil {
		return result, err
	}
	defer ours.Close()
	bare, err := base.pool(ctx, "autopost_owner")
	if err != nil {
		return result, err
	}
	defer bare.Close()
	posts := max(2*senders, b.drain/pushChannels)
	waits := map[string][]float64{}
	door := func(name string, handler http.Handler) subject {
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
		door("autopost", push.New(doorStore{ours}, slog.New(slog.DiscardHandler))), door("bare", bareDoor{bare}))
	if err != nil {
		return result, err
	}
	made, err := value[int](ctx, base, `select count(*)::int from autopost.deliveries where workspace_id = $1 and status = 'queued'`, workspace)
	if want := posts * pushChannels * b.rounds; err != nil || made != want {
		return result, errors.Join(err, fmt.Errorf("%d deliveries wait, and %d were pushed", made, want))
	}
	// A tripwire and no goal: what else is done for a post depends on its channels, not on the body.
	result.Checks = []Check{atLeast(0.01, ratio("autopost / bare insert of the body", samples["autopost"], samples["bare"]))}
	result.Figures = []Figure{
		figure(fmt.Sprintf("posts accepted, each for %d channels", pushChannels), "posts/s", samples["autopost"]...),
		figure("  p99 of an answer", "ms", waits["autopost"]...),
		figure("bodies inserted, bare", "posts/s", samples["bare"]...),
		figure("  p99 of an answer", "ms", waits["bare"]...),
	}
	result.Notes = []string{fmt.Sprintf("%d senders over loopback; one of our posts is guard, run, receipt, message, %d deliveries and their gates", senders, pushChannels)}
	return result, nil
}

// sendAll pushes so many posts by all senders, and returns how long it took and how
// long each waited for its answer.
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
				if err := sendOne(ctx, client, "http://"+listener.Addr().String(), secret); err != nil {
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

func sendOne(ctx context.Context, client *http.Client, url, secret string) error {
	mark := lastPost.Add(1)
	body, err := json.Marshal(map[string]any{"text": text(), "parse_mode": "HTML", "source_ref": fmt.Sprint("bench-", mark)})
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
		err = fmt.Errorf("the door answered %d: %.200s", response.StatusCode, answer)
	}
	return err
}
