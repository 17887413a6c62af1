package races_test

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/internal/testing/wait"
)

//go:embed world.sql
var world string

const blob = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// stage is a prepared world that is put back before each meeting, and the sessions that meet in it.
type stage struct {
	t      *testing.T
	db     *pgtest.DB
	actors []*pgtest.Session
	prompt *pgtest.Session // holds the lock at which an actor stops
	words  *strings.Replacer
	played int

	verified int64  // ends that verify was shown
	state    string // after the last meeting
}

// open prepares workspace w: channels a and b of the limited group g, c of group h; of each thing that an act
// can be about, one.
func open(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, db: pgtest.New(t)}
	s.db.Exec(`do $$ begin execute format('alter database %I set deadlock_timeout = ''50ms''', current_database()); end $$`)
	s.db.Exec(world)
	s.db.Exec(`update autopost.settings set value = '1' where key = 'event_partition_days'`) // planning over many partitions takes verify its time
	s.db.Exec(`select autopost.ensure_event_partitions()`)
	posttest.Workspace(s.db, "w")
	s.db.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 'feed', 'rss')`)
	s.db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('w', 'feed', 'pull_source', 'feed')`)
	s.db.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ('w', 'telegram', 'g', 1000)`)
	s.db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta) values ('w', 'bot', 'bot_webhook', repeat('b', 64), '{"auth_ref": "g"}')`)
	s.db.Exec(`insert into autopost.discovered_chats (workspace_id, platform, auth_ref, target_id, first_seen, last_seen) values ('w', 'telegram', 'g', '-1', now(), now())`)
	s.db.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'g', 'telegram', 'env:G'), ('w', 'h', 'telegram', 'sealed:h'), ('w', 'other', 'telegram', 'env:O')`)
	s.db.Exec(`update autopost.credential_health set lease_token = 'posttest' where auth_ref = 'g'`)
	s.db.Exec(`insert into autopost.sealed_secrets (workspace_id, auth_ref, version, key_id, wrapped_key, sealed, source, created_at)
		values ('w', 'h', 1, 'k1', 'w', 's', '', now())`)
	posttest.Channel(s.db, "w", "a", posttest.Group("g"), posttest.MaxParallel(5))
	posttest.Channel(s.db, "w", "b", posttest.Group("g"), posttest.MaxParallel(5), posttest.Rate(1000))
	posttest.Channel(s.db, "w", "c", posttest.Group("h"), posttest.MaxParallel(2))
	s.db.Exec(`update autopost.channels set on_unknown = 'hold' where channel_id = 'c'`)
	words := append(s.subjects(), s.jobs()...)
	// A webhook with a delivered, a claimed and a waiting event.
	s.db.Exec(`select autopost.put_webhook('w', 'crm', '{"url": "https://example.org/results", "signing_ref": "key"}', 'olga', 'a test', false)`)
	s.db.Exec(`select autopost.test_webhook('w', 'crm', 'olga', 'a test')`)
	s.db.Exec(`select autopost.claim_webhooks('w', 10)`)
	s.db.Exec(`select autopost.test_webhook('w', 'crm', 'olga', 'a test')`)
	// An alert with a claimed notice for one target, and an idle target.
	s.db.Exec(`select autopost.put_alert_target('w', t.id, jsonb_build_object('kind', 'telegram', 'address', '-1001', 'auth_ref', 'g', 'kinds', array[t.kind]), 'olga', 'a test', false)
		from (values ('ops', 'dead'), ('spare', 'orphans')) t (id, kind)`)
	s.db.Exec(`select autopost.check_alerts('w')`)
	s.db.Exec(`select autopost.claim_notices('w', 10)`)
	// A message that asks for a decision.
	s.db.Exec(`select autopost.put_moderation_chat('w', 'mods', '{"auth_ref": "g", "target_id": "-1002"}', 'olga', 'a test', false)`)
	s.db.Exec(`select autopost.claim_moderation('w', 10)`)
	// Two dialogs of the shop bot: one has a claimed reply and a waiting one, the other is with an operator.
	s.db.Exec(`update autopost.workspace_endpoints set meta = meta || '{"bot": {"operator_chat_id": "-71", "fallback": "escalate"}}' where endpoint_id = 'bot'`)
	s.db.Exec(`select autopost.put_bot_rule('w', 'faq', '{"keywords": ["hi"], "response_template": "Hello.", "next_state": "asked"}', 'olga', 'a test', false)`)
	s.db.Exec(`select autopost.bot_receive('w', 'bot', jsonb_build_object('update_id', 7100 + n, 'message', jsonb_build_object('message_id', n, 'from', '{"id": 7}'::jsonb, 'chat', jsonb_build_object('id', c, 'type', 'private'), 'text', t)))
		from (values (1, 71, 'hi'), (2, 72, 'what')) m (n, c, t)`)
	s.db.Exec(`select autopost.bot_claim_replies('w', 'run', 10)`)
	s.db.Exec(`select autopost.bot_receive('w', 'bot', '{"update_id": 7103, "message": {"message_id": 3, "from": {"id": 7}, "chat": {"id": 71, "type": "private"}, "text": "hi"}}')`)
	// What waits for a decision is overdue: an expiry and a decision compete.
	s.db.Exec(`update autopost.submissions set expires_at = clock_timestamp() - interval '1 second' where status = 'pending'`)
	for name, claimed := range map[string]string{
		"ask":    `select message_id::text, claim_token from autopost.moderation_messages order by message_id limit 1`,
		"notice": `select message_id::text, claim_token from autopost.alert_messages`,
		"reply":  `select reply_id::text, claim_token from autopost.bot_outbox where chat_id = '71' and claim_token is not null`,
		"result": `select event_id::text, claim_token from autopost.webhook_sends where claim_token is not null`,
	} {
		var id, token string
		require.NoError(t, s.db.QueryRow(claimed).Scan(&id, &token), name)
		words = append(words, "{"+name+"}", "'"+id+"'", "{"+name+".token}", "'"+token+"'")
	}
	words = append(words, "{waiting.message}", pgtest.Value[string](s.db, strings.NewReplacer(words...).Replace(`select quote_literal(d.message_id) from autopost.deliveries d where d.delivery_id = {waiting}`)))
	words = append(words, "{alert}", pgtest.Value[string](s.db, `select quote_literal(alert_id) from autopost.alerts order by kind limit 1`))
	words = append([]string{"{ask.nonce}", "'" + pgtest.Value[string](s.db, `select approve_nonce from autopost.moderation_messages order by message_id limit 1`) + "'"}, words...)
	s.words = strings.NewReplacer(words...)
	// A fan-out that has yet to begin.
	s.db.Exec(`update autopost.settings set value = '2' where key = 'fanout_chunk_channels'`)
	s.db.Exec(`select autopost.enqueue_messages_and_deliveries('w', 'in', 'api', '{"text": "to very many"}')`)
	s.db.Exec(`update autopost.settings set value = '2000' where key = 'fanout_chunk_channels'`)
	s.db.Exec(`select test.keep()`)
	for n := range 3 {
		s.actors = append(s.actors, s.db.Session(fmt.Sprint("actor ", n), ""))
	}
	s.prompt = s.db.Session("prompt", "")
	return s
}

// subjects makes what the acts are about, and returns their names and values in turn.
func (s *stage) subjects() []string {
	ids := map[string]string{
		"failed": posttest.Delivery(s.db, "w", "a", autopost.StatusFailedPermanent), "dead": posttest.Delivery(s.db, "w", "a", autopost.StatusDead),
		"sent": posttest.Delivery(s.db, "w", "a", autopost.StatusSending), "held": posttest.Delivery(s.db, "w", "c", autopost.StatusSending),
		"started": posttest.Delivery(s.db, "w", "a", autopost.StatusSending), "idle": posttest.Delivery(s.db, "w", "a", autopost.StatusSending),
		"late":    posttest.Delivery(s.db, "w", "b", autopost.StatusSending),
		"expired": posttest.Delivery(s.db, "w", "b", autopost.StatusSending), "lost": posttest.Delivery(s.db, "w", "b", autopost.StatusSending),
		"claimed": posttest.Delivery(s.db, "w", "c", autopost.StatusQueued), "waiting": posttest.Delivery(s.db, "w", "b", autopost.StatusQueued),
	}
	for _, name := range []string{"sent", "started", "expired", "held"} {
		s.db.Exec(`select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d where d.delivery_id = $1::uuid`, ids[name])
	}
	for name, outcome := range map[string]string{"sent": sent, "held": timedOut} {
		s.db.Exec(`select autopost.commit_outcome('w', d.delivery_id, d.claim_token, $2::jsonb) from autopost.deliveries d where d.delivery_id = $1::uuid`, ids[name], outcome)
	}
	s.db.Exec(`update autopost.deliveries set sending_lease_until = clock_timestamp() - interval '1 second', claimed_at = claimed_at - interval '11 minutes',
		sending_started_at = sending_started_at - interval '11 minutes' where delivery_id = any (array[$1, $2]::uuid[])`, ids["expired"], ids["lost"])
	s.db.Exec(`update autopost.deliveries set send_at = send_at - interval '1 second' where delivery_id = $1::uuid`, ids["late"])
	s.db.Exec(`update autopost.deliveries set status = 'claimed', claim_token = 'by hand', claimed_by = 'posttest', claimed_at = clock_timestamp() - interval '6 minutes'
		where delivery_id = $1::uuid`, ids["claimed"])
	posttest.Post(s.db, "w", "waits everywhere")
	s.db.Exec(`select autopost.put_media_origin('w', $1, 'file:///x', 'image/png', 10, 'image', 1, 1)`, blob)
	for range 2 {
		s.db.Exec(`select autopost.receive_push('w', 'in', jsonb_build_array(jsonb_build_object('text', gen_random_uuid(), 'media', '[{"type": "image", "url": "https://example.org/x.png"}]'::jsonb)))`)
	}
	s.db.Exec(`select * from autopost.claim_submissions('w', 'run', 1)`)
	s.db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated) values ('w', 'ruled', 'webhook_push', repeat('d', 64), true)`)
	s.db.Exec(`select autopost.receive_push('w', 'ruled', '[{"text": "waits for a decision"}]')`)
	s.db.Exec(`select autopost.put_template('w', 'offer', '*', '{"body": "{title}"}', 'olga', 'a test')`)
	s.db.Exec(`select autopost.put_event_type('w', t.event, t.fields, 'olga', 'a test', false) from (values ('offer', '{"template_id": "offer"}'::jsonb),
		('ruled', '{"template_id": "offer", "moderated": true}'), ('silent', '{"template_id": "offer", "enabled": false}')) t (event, fields)`)
	s.db.Exec(`select autopost.receive_event('w', 'in', jsonb_build_object('event', e, 'payload', jsonb_build_object('title', 'of type ' || e))) from unnest('{ruled,silent}'::text[]) e`)
	s.db.Exec(`select * from autopost.list_due_sources('w', 1)`)
	s.db.Exec(`update autopost.pull_cursors set next_poll_at = clock_timestamp() - interval '1 second'`)

	words := []string{"{by}", "'olga', 'a test'", "{blob}", blob, "{run}", pgtest.Value[string](s.db, `select quote_literal(run_id) from autopost.ingest_runs limit 1`),
		"{apikey}", pgtest.Value[string](s.db, `select quote_literal(autopost.create_api_key('w', '{"name": "first", "role": "owner"}', repeat('b', 64), 'olga', 'a test') ->> 'id')`)}
	person := pgtest.Value[string](s.db, `select autopost.put_user(null, '{"email": "a@b"}', 'olga', 'a test', false) ->> 'user_id'`)
	words = append(words, "{person}", "'"+person+"'::uuid")
	for _, token := range []string{"c", "d"} {
		s.db.Exec(`select autopost.begin_session($1::uuid, repeat($2, 64))`, person, token)
	}
	for name, id := range ids {
		var token, text, message string
		require.NoError(s.t, s.db.QueryRow(`select coalesce(claim_token, ''), rendered_text, message_id::text from autopost.deliveries where delivery_id = $1::uuid`, id).Scan(&token, &text, &message))
		words = append(words, "{"+name+"}", "'"+id+"'", "{"+name+".token}", "'"+token+"'", "{"+name+".text}", "'"+text+"'::text", "{"+name+".message}", "'"+message+"'",
			"{"+name+".item}", `'{"delivery_id": "`+id+`", "claim_token": "`+token+`"}'::jsonb`)
	}
	// The sent post has a running edit and a waiting pin.
	s.db.Exec(`select autopost.request_acts('w', k, null, array[$1]::uuid[], c, null, 'olga', 'a test', false)
		from (values ('edit', '{"text": "new"}'::jsonb), ('pin', null)) v (k, c)`, ids["sent"])
	s.db.Exec(`select * from autopost.claim_acts('w', 'run', 1)`)
	var act, doing, claim string
	require.NoError(s.t, s.db.QueryRow(`select e.act_id::text, e.claim_token, p.act_id::text from autopost.post_acts e, autopost.post_acts p
		where e.kind = 'edit' and p.kind = 'pin'`).Scan(&doing, &claim, &act))
	words = append(words, "{act}", "'"+act+"'", "{doing}", "'"+doing+"'", "{doing.token}", "'"+claim+"'")
	var id, token string
	require.NoError(s.t, s.db.QueryRow(`select submission_id::text, claim_token from autopost.submissions where claim_token is not null`).Scan(&id, &token))
	for name, which := range map[string]string{"pending": "status = 'pending' and kind = 'push'", "event": "status = 'pending' and kind = 'event'", "skipped": "status = 'skipped'"} {
		words = append(words, "{"+name+"}", pgtest.Value[string](s.db, `select quote_literal(submission_id) from autopost.submissions where `+which))
	}
	recurring := pgtest.Value[string](s.db, `select autopost.put_recurrence('w', null, '{"endpoint_id": "in", "rule": "FREQ=DAILY", "starts_at": "2026-01-01T10:00", "payloads": [{"text": "again"}]}', 'olga', 'a test', false) ->> 'recurrence_id'`)
	words = append(words, "{recurrence}", "'"+recurring+"'", "{occurrence}", pgtest.Value[string](s.db, `insert into autopost.occurrences (workspace_id, occurrence_id, recurrence_id, local_at, at, updated_at)
		values ('w', autopost.new_id(), $1::uuid, now(), now(), now()) returning quote_literal(occurrence_id)`, recurring))
	words = append(words, "{draft}", pgtest.Value[string](s.db, `select quote_literal(autopost.put_draft('w', null, '{"payload": {"text": "fresh"}, "endpoint_id": "in"}', 'ann') ->> 'draft_id')`))
	return append(words, "{fetching}", "'"+id+"'", "{fetching.token}", "'"+token+"'")
}

// meeting is some acts in transactions of their own, and the order of their steps: the n-th mention of an actor
// is its n-th step, call or commit. A step that must wait is taken as soon as it can be.
type meeting struct {
	acts  []act
	order []int
	// Where the first of the order stops until the others have done what they can: at its look-th look at the clock, or at a
	// row that somebody else holds.
	look int
	row  string
}

func (m meeting) String() string {
	switch {
	case m.look > 0:
		return fmt.Sprintf("%v in order %v, stopped at look %d at the clock", m.acts, m.order, m.look)
	case m.row != "":
		return fmt.Sprintf("%v in order %v, stopped at %s", m.acts, m.order, m.row)
	}
	return fmt.Sprintf("%v in order %v", m.acts, m.order)
}

// rows are those at which acts wait for each other.
var rows = []string{
	"platform_limits where rate_group = 'g'", "channels where channel_id = 'a'", "channels where channel_id = 'b'", "channels where channel_id = 'c'",
	"messages where message_id = (select message_id from autopost.deliveries where delivery_id = {failed})",
	"messages where message_id = (select message_id from autopost.deliveries where delivery_id = {dead})",
	"deliveries where delivery_id = {started}", "deliveries where delivery_id = {late}",
	"channel_gates where channel_id = 'a'", "channel_gates where channel_id = 'b'", "channel_gates where channel_id = 'c'",
}

// actor is one of the sessions in a meeting.
type actor struct {
	session *pgtest.Session
	call    string
	granted int // steps that may be taken
	taken   int
	waiting *pgtest.Pending
	err     error
}

// play puts the world back and lets a meeting happen. It returns what went wrong, and whether the stop was reached.
func (s *stage) play(m meeting) (trouble []string, stopped bool) {
	s.t.Helper()
	if s.played++; s.played%300 == 0 {
		s.db.Exec(`vacuum`)
	}
	s.db.Exec(`select test.reset()`)
	actors := make([]*actor, len(m.acts))
	for n, a := range m.acts {
		role := "autopost_engine"
		if a.function == "" {
			role = "autopost_owner"
		}
		actors[n] = &actor{session: s.actors[n], call: s.words.Replace(a.sql)}
		actors[n].session.Exec(`begin`)
		actors[n].session.Exec(`set local role ` + role)
	}
	release := s.hold(m, actors[m.order[0]])
	for at, n := range m.order {
		actors[n].granted++
		s.advance(actors)
		if at == 0 {
			stopped = actors[n].waiting != nil
			if !stopped && release != nil {
				s.leave(m, actors[n], release)
				return nil, false
			}
		}
	}
	if release != nil {
		release()
	}
	deadline := time.Now().Add(wait.Bound)
	for !s.advance(actors) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: everybody waits", m)
		}
	}
	for n, a := range actors {
		if a.err != nil {
			trouble = append(trouble, fmt.Sprintf("%s: %v", m.acts[n], a.err))
		}
	}
	for _, a := range m.acts {
		if a.again {
			s.db.Exec(s.words.Replace(a.sql))
		}
	}
	s.state = strings.Join(slices.Sorted(slices.Values(strings.Split(pgtest.Value[string](s.db, `select test.state()`), "\n"))), "\n")
	// A gate that rearm_gates had to repair was wrong.
	return append(trouble, pgtest.Column[string](s.db, `
		select 'a gate was wrong: ' || r::text from autopost.rearm_gates('w') r where r <> '{"rearmed": 0}'`)...), stopped
}

// hold takes what the first actor will stop at, and returns how to let go; nil where it is not to stop.
func (s *stage) hold(m meeting, first *actor) func() {
	switch {
	case m.look > 0:
		s.prompt.Exec(`select pg_advisory_lock(1)`)
		first.session.Exec(`select set_config('test.stop_at', $1, true)`, fmt.Sprint(m.look))
		return func() { s.prompt.Exec(`select pg_advisory_unlock(1)`) }
	case m.row != "":
		s.prompt.Exec(`begin`)
		s.prompt.Exec(s.words.Replace(`select 1 from autopost.` + m.row + ` for no key update`))
		return func() { s.prompt.Exec(`rollback`) }
	}
	return nil
}

// leave ends a meeting whose first actor does not come to where it should stop.
func (s *stage) leave(m meeting, first *actor, release func()) {
	release()
	if first.err != nil {
		s.t.Errorf("%s: %v", m, first.err)
	}
	for n := range m.acts {
		s.actors[n].Exec(`rollback`)
	}
}

// verify shows the end of a meeting to verify.
func (s *stage) verify() []string {
	s.verified++
	return pgtest.Column[string](s.db, `select format('%s %s: %s', v.invariant, v.title, v.sample) from autopost.verify('w') v where v.violations > 0`)
}

// advance takes all granted steps that need not wait, and reports whether all have been taken.
func (s *stage) advance(actors []*actor) bool {
	for moved := true; moved; {
		moved = false
		for _, a := range actors {
			for a.step() {
				moved = true
			}
		}
	}
	for _, a := range actors {
		if a.taken < 2 {
			return false
		}
	}
	return true
}

// step takes one granted step, or the end of one that waited.
func (a *actor) step() bool {
	switch {
	case a.waiting != nil:
		if len(a.waiting.Settled()) > 0 {
			return false
		}
		a.err, a.waiting = a.waiting.Err(), nil
		a.taken++
	case a.taken == a.granted:
		return false
	case a.taken == 0:
		a.waiting = a.session.Start(a.call)
	default:
		a.session.Exec(`commit`)
		a.taken++
	}
	return true
}
