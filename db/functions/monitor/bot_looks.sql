-- Checks of the shop bot for check_alerts.

create or replace function autopost.look_at_bot_messages(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds messages to the bot that cannot be processed, and bots whose replies fail. A rate
--          limit is not a failure.
-- Reads:   bot_inbox, bot_outbox, alerts.
declare
	v_most constant bigint := 1000;
	v_since constant timestamptz := p_now - interval '10 minutes';
	v_seen timestamptz := autopost.seen_until(p_workspace_id, 'bot_given_up');
begin
	return query select autopost.finding('bot_given_up', 'bot', g.n, (p_level ->> 'alert_bot_given_up')::numeric,
		format('%s given up after five tries: %s', autopost.how_many(g.n, v_most, 'message to the bot was',
			'messages to the bot were'), left(g.error ->> 'message', 200)))
	from (
		select count(*) as n, (array_agg(i.error order by i.next_at desc))[1] as error from (
			select x.next_at, x.error from autopost.bot_inbox x
			where x.workspace_id = p_workspace_id and x.status = 'received' and x.tries = 5 and x.next_at > v_seen
			order by x.next_at desc limit v_most) i) g
	where g.n > 0;
	return query select autopost.finding('bot_errors', 'bot', e.n, (p_level ->> 'alert_bot_errors_10m')::numeric,
		format('the processing of %s failed in 10 minutes: %s', autopost.how_many(e.n, v_most, 'message to the bot',
			'messages to the bot'), left(e.error ->> 'message', 200)))
	from (
		select count(*) as n, (array_agg(i.error order by i.next_at desc))[1] as error from (
			(select x.next_at, x.error from autopost.bot_inbox x
			where x.workspace_id = p_workspace_id and x.status = 'received' and x.tries < 5 and x.error is not null
				and x.next_at > v_since limit v_most)
			union all
			(select x.next_at, x.error from autopost.bot_inbox x
			where x.workspace_id = p_workspace_id and x.status = 'received' and x.tries = 5
				and x.next_at > v_since limit v_most)) i) e
	where e.n > 0;
	return query select f.* from (
		select o.provider, o.auth_ref, count(*) as n,
			(array_agg(o.last_error order by o.last_call_at desc))[1] as error
		from (
			(select x.provider, x.auth_ref, x.last_error, x.last_call_at from autopost.bot_outbox x
			where x.workspace_id = p_workspace_id and x.status in ('retry', 'sending')
				and x.last_error is not null and x.last_call_at > v_since
				and not autopost.is_rate_limit(x.last_error) limit v_most)
			union all
			(select x.provider, x.auth_ref, x.last_error, x.last_call_at from autopost.bot_outbox x
			where x.workspace_id = p_workspace_id and x.status in ('failed_permanent', 'dead')
				and x.finished_at > v_since limit v_most)) o
		group by o.provider, o.auth_ref
		order by o.provider, o.auth_ref limit 100) b
	cross join lateral autopost.finding('bot_replies_failing', format('bot:%s/%s', b.provider, b.auth_ref), b.n,
		(p_level ->> 'alert_bot_reply_failures_10m')::numeric,
		format('bot %s/%s: the calls of %s failed in 10 minutes: %s',
			b.provider, b.auth_ref, autopost.how_many(b.n, v_most, 'reply', 'replies'),
			concat_ws(': ', b.error ->> 'code', left(b.error ->> 'message', 200))),
		jsonb_build_object('code', b.error -> 'code')) f;
end
$$;

create or replace function autopost.look_at_bot_rules(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds a large share of messages without a rule within the newest 1,000 of an hour, and
--          words that often had no rule within the newest 1,000 such messages of a day. The text of
--          customers is not part of an alert.
-- Reads:   bot_logs, alerts.
declare
	v_least constant int := 20; -- messages from which a share says something
	v_most constant int := 1000;
	v_seen timestamptz := greatest(autopost.seen_until(p_workspace_id, 'bot_unmatched'), p_now - interval '1 day');
begin
	return query select autopost.finding('bot_fallback_rate', 'bot', round(100.0 * m.unmatched / m.n),
		(p_level ->> 'alert_bot_fallback_percent')::numeric,
		format('no rule answered %s of the last %s messages to the bot', m.unmatched, m.n))
	from (
		select count(*) as n,
			count(*) filter (where autopost.bot_unmatched(l.kind, l.matched_rule_id, l.meta)) as unmatched
		from (
			select x.kind, x.matched_rule_id, x.meta from autopost.bot_logs x
			where x.workspace_id = p_workspace_id and x.ts > p_now - interval '1 hour'
				and x.kind in ('matched', 'fallback', 'guarded', 'escalated')
			order by x.ts desc limit v_most) l) m
	where m.n >= v_least;
	return query select autopost.finding('bot_unmatched', 'bot', q.n, (p_level ->> 'alert_bot_unmatched_day')::numeric,
		format('messages with the same words had no rule %s in a day', autopost.counted(q.n, 'time', 'times')))
	from (
		select count(*) as n
		from (
			select x.message_text from autopost.bot_logs x
			where x.workspace_id = p_workspace_id and x.ts > v_seen
				and (x.kind = 'fallback' or x.kind = 'escalated' and x.matched_rule_id is null)
				and x.message_text <> '' and x.meta -> 'guard' is null
			order by x.ts desc limit v_most) l
		group by autopost.bot_words(l.message_text)
		order by count(*) desc limit 1) q;
end
$$;

create or replace function autopost.look_at_bot(p_workspace_id text, p_level jsonb, p_now timestamptz)
	returns setof jsonb
language plpgsql stable
as $$
-- Purpose: finds problems of the shop bot; nothing in a workspace that never had a rule.
-- Reads:   bot_rules; as look_at_bot_messages and look_at_bot_rules.
begin
	if exists (select 1 from autopost.bot_rules r where r.workspace_id = p_workspace_id) then
		return query select f.* from autopost.look_at_bot_messages(p_workspace_id, p_level, p_now) f;
		return query select f.* from autopost.look_at_bot_rules(p_workspace_id, p_level, p_now) f;
	end if;
end
$$;
