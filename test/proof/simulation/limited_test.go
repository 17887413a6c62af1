package simulation

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// limiter is a platform that allows a number of posts in a period.
type limiter struct {
	posts  int
	period time.Duration
	// sliding: in any period. Otherwise a bucket of posts that fills evenly.
	sliding bool

	taken []time.Time
	level float64
	at    time.Time
}

// offer takes a post, or returns the wait that a client has to keep, in whole seconds.
func (l *limiter) offer(now time.Time) time.Duration {
	var wait time.Duration
	if l.sliding {
		if n := len(l.taken) - l.posts; n >= 0 {
			wait = l.taken[n].Add(l.period).Sub(now)
		}
	} else {
		if l.at.IsZero() {
			l.level, l.at = float64(l.posts), now
		}
		slot := l.period / time.Duration(l.posts)
		l.level = min(float64(l.posts), l.level+float64(now.Sub(l.at))/float64(slot))
		l.at = now
		if l.level < 1-1e-6 {
			wait = time.Duration((1 - l.level) * float64(slot))
		}
	}
	if wait > 0 {
		return time.Duration(math.Ceil(wait.Seconds())) * time.Second
	}
	l.level--
	l.taken = append(l.taken, now)
	return 0
}

// least is the shortest time in which the platform takes so many posts.
func (l *limiter) least(posts int) time.Duration {
	if l.sliding {
		return time.Duration((posts-1)/l.posts) * l.period
	}
	return max(0, time.Duration(posts-l.posts)*l.period/time.Duration(l.posts))
}

// A queue meets a limit of its platform that nobody configured. Each post is sent, at most one call in two posts is
// refused, and the queue ends in little more than the time that the limit allows. In the database, on its own clock.
func TestLimitedQueueEndsInTheTimeOfItsLimit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(`
		create table public.clock (now timestamptz not null);
		insert into public.clock values ('2026-06-01 12:00:00+00');
		grant select on public.clock to public;
		create or replace function autopost.now_ts() returns timestamptz language sql volatile as $$ select c.now from public.clock c $$;
		insert into autopost.workspaces (workspace_id) values ('w');
		insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps)
		values ('w', 'in', 'webhook_push', repeat('a', 64), 1000)`)
	session := db.Session("queue", "")
	posts := 30
	if pgtest.Long() {
		posts = 552
	}
	minute, day := time.Minute, 24*time.Hour
	for n, c := range []struct {
		name, channel string
		limiter       limiter
		most          float64
	}{
		{"a group with the rate of groups", `{"target_id": "-1001234567890:7"}`, limiter{posts: 20, period: minute}, 1.1},
		{"a group that looks like a channel", `{"target_id": "-1001234567891"}`, limiter{posts: 20, period: minute}, 1.1},
		{"a window, no rate, calls at a time", `{"target_id": "@c3", "rate_rps": 0, "max_parallel": 5}`, limiter{posts: 20, period: minute, sliding: true}, 1.3},
		{"a slow mode", `{"target_id": "@c4"}`, limiter{posts: 1, period: 30 * time.Second, sliding: true}, 1.2},
		{"a post an hour", `{"target_id": "@c5"}`, limiter{posts: 1, period: time.Hour, sliding: true}, 1.3},
		{"six posts a day", `{"target_id": "@c6"}`, limiter{posts: 6, period: day, sliding: true}, 1.3},
	} {
		q := &queue{t: t, session: session, channel: fmt.Sprint("c", n+1), limiter: c.limiter}
		session.Exec(`select autopost.put_channel('w', $1, '{"platform": "telegram", "auth_ref": "bot"}' || $2::jsonb, 'olga', 'new', false)`, q.channel, c.channel)
		session.Exec(`select autopost.enqueue_messages_and_deliveries_batch('w', 'in', 'api', (select jsonb_agg(jsonb_build_object(
			'text', $1 || ' ' || n, 'routing', jsonb_build_object('include_channels', array[$1]))) from generate_series(1, $2::int) n))`, q.channel, posts)
		took := q.drain()
		sent := session.Exec(`select count(*)::int from autopost.deliveries where channel_id = $1 and status = 'sent'`, q.channel)[0][0]
		least := q.least(posts)
		t.Logf("%s: %d posts, %d limits, %s of %s", c.name, posts, q.limits, took.Round(time.Second), least)
		require.EqualValues(t, posts, sent, c.name)
		require.LessOrEqual(t, q.limits, posts/2, c.name)
		require.LessOrEqual(t, took, time.Duration(c.most*float64(least))+q.period, c.name)
	}
}

// queue is the queue of one channel.
type queue struct {
	limiter
	t       *testing.T
	session *pgtest.Session
	channel string
	limits  int
}

func (q *queue) now() time.Time {
	return q.session.Exec(`select autopost.now_ts()`)[0][0].(time.Time)
}

// drain plays the dispatcher until nothing waits. It returns the time that passed on the clock of the database.
func (q *queue) drain() time.Duration {
	began := q.now()
	for {
		for _, claim := range q.session.Exec(`select delivery_id::text, claim_token, coalesce(send_at, autopost.now_ts()) from autopost.claim_deliveries('w', 'run-1', 100)`) {
			q.session.Exec(`update public.clock set now = greatest(now, $1)`, claim[2])
			q.session.Exec(`select autopost.start_call('w', $1::uuid, $2)`, claim[0], claim[1])
			outcome := map[string]any{"ok": true, "provider_message_id": claim[0]}
			if wait := q.offer(q.now()); wait > 0 {
				q.limits++
				outcome = map[string]any{"ok": false, "error": map[string]any{"category": "TRANSIENT", "scope": "channel", "code": "tg_429", "known": true, "retry_after_ms": wait.Milliseconds()}}
			}
			text, err := json.Marshal(outcome)
			require.NoError(q.t, err)
			q.session.Exec(`update public.clock set now = now + interval '100 ms'`)
			q.session.Exec(`select autopost.commit_outcome('w', $1::uuid, $2, $3::jsonb)`, claim[0], claim[1], string(text))
		}
		wake := q.session.Exec(`select (autopost.ready_work('', 1, '[]') ->> 'next_wake_ms')::float8`)[0][0]
		if wake == nil {
			return q.now().Sub(began)
		}
		q.session.Exec(`update public.clock set now = now + make_interval(secs => greatest(1, $1::float8) / 1000)`, wake)
	}
}
