create or replace function autopost.alert_kinds() returns table (kind text, severity text, title text, remedy text)
language sql immutable parallel safe
as $$
-- Every alert that there is: how bad it is, what it says where nobody says more, and what to do; {workspace} and {subject} stand for its own.
values
	('dead', 'error', 'deliveries are dead', 'see them by: autopost deliveries list --status dead --workspace {workspace}; when the cause is gone: autopost deliveries requeue'),
	('dead_many', 'critical', 'very many deliveries are dead', 'stop what fills the queue, find the cause by: autopost why DELIVERY_ID; then autopost deliveries requeue --workspace {workspace}'),
	('failed_permanent', 'error', 'deliveries fail for good', 'see their errors by: autopost deliveries list --status failed_permanent --workspace {workspace}'),
	('paused_channels', 'warning', 'channels are paused', 'see why by: autopost channel list --workspace {workspace}; then autopost channel resume ID'),
	('oldest_due', 'error', 'posts are late', 'is autopost serve running, and are its limits too low? See: autopost health --workspace {workspace}'),
	('unknown_outcome', 'error', 'nobody knows whether posts were published', 'look at the channel; if a post is missing: autopost deliveries requeue --workspace {workspace}; list: autopost deliveries list --status failed_permanent'),
	('auth_lost', 'critical', 'the platform refuses a credential', 'give it a new secret by: autopost credential set (or link) NAME --workspace {workspace}; then autopost credential requeue'),
	('auth_expiring', 'warning', 'a credential expires soon', 'renew it by: autopost credential set (or link) NAME --workspace {workspace}'),
	('auth_not_renewed', 'error', 'a credential cannot be renewed', 'see the error by: autopost credential show NAME --workspace {workspace}; link it anew if it stays'),
	('moderation_backlog', 'warning', 'posts wait for a decision', 'decide on them in the moderation queue of workspace {workspace}'),
	('source_failing', 'warning', 'a source cannot be polled', 'see the error by: autopost source show ID --workspace {workspace}; try it by: autopost source test ID'),
	('source_stopped', 'error', 'a source is polled no more', 'correct its address by: autopost source set ID --workspace {workspace}; or disable it'),
	('breaker_open', 'error', 'the platform of a rate group fails, its breaker is open', 'look at the platform''s status page; posts wait and go on by themselves'),
	('orphans', 'error', 'rows refer to nothing', 'run: autopost verify --workspace {workspace}; keep its output and compare with the last backup'),
	('audit_chain', 'critical', 'the audit log was changed, or rows of it are missing', 'run: autopost verify --workspace {workspace}; compare with the heads in the daemon''s log (monitor.audit_head)'),
	('alert_target_failing', 'error', 'people cannot be told of alerts', 'see the error by: autopost alert target list --workspace {workspace}; try it by: autopost alert target test ID'),
	('rights_lost', 'error', 'the bot may not post in a chat any more', 'give it back its rights in the chat: the channel goes on by itself; or disable it by: autopost channel disable ID --workspace {workspace}'),
	('subscription', 'error', 'a platform does not tell what happens to a bot', 'see the error here; compare AUTOPOST_PUBLIC_URL with the address that the platform can reach'),
	('webhook_disabled', 'error', 'a result webhook was disabled', 'mend its receiver; then: autopost webhook set ID --workspace {workspace}, and autopost webhook replay ID for what it missed'),
	('no_dispatcher', 'critical', 'no daemon sends posts', 'start autopost serve; see its log if it ends by itself'),
	('duty_failing', 'error', 'the monitor cannot do a duty', 'see the error here and in the daemon''s log (monitor.failed); run: autopost doctor'),
	('disk_low', 'critical', 'a disk is nearly full, or is', 'make room there, or give it a larger disk, before it takes nothing any more: docs/operate/disks.md'),
	('clock_skew', 'error', 'the clocks of a daemon and of the database differ', 'switch on time synchronisation (NTP) on both machines'),
	('clock_jumped', 'error', 'the clock of the database has jumped', 'have the clock of its machine kept by NTP; what waited waits as long as it was to, dates that people set stay'),
	('partitions_missing', 'critical', 'there is no room for the events of the days to come', 'run: autopost doctor; the monitor makes partitions when it may create tables'),
	('events_without_partition', 'warning', 'events lie in the default partition', 'the monitor was late; they go with time, see: autopost doctor'),
	('config_differs', 'warning', 'daemons are configured differently', 'give all daemons the same environment (docs/reference/config.md), and restart them')
$$;

create or replace function autopost.alert_remedy(p_kind text, p_workspace_id text, p_subject text) returns text
language sql immutable parallel safe
as $$
-- What to do about an alert.
select coalesce((
	select replace(replace(k.remedy, '{workspace}', p_workspace_id), '{subject}', p_subject) from autopost.alert_kinds() k where k.kind = p_kind), 'run: autopost doctor')
$$;

create or replace function autopost.raise_alert(p_workspace_id text, p_kind text, p_subject text, p_error jsonb, p_meta jsonb) returns void
language plpgsql
as $$
-- Tells people of something, once until it has ended. Whoever raises it ends it.
-- Writes: alerts.
declare
	v_kind record;
begin
	select * into v_kind from autopost.alert_kinds() k where k.kind = p_kind;
	insert into autopost.alerts (workspace_id, alert_id, kind, subject, raised_at, error, meta, severity, what, remedy)
	values (p_workspace_id, autopost.new_id(), p_kind, p_subject, autopost.now_ts(), autopost.redact(p_error), autopost.redact(p_meta), coalesce(v_kind.severity, 'error'),
		autopost.redact(concat_ws(': ', p_subject, coalesce(v_kind.title, p_kind), left(p_error ->> 'message', 200))), autopost.alert_remedy(p_kind, p_workspace_id, p_subject))
	on conflict (workspace_id, kind, subject) where ended_at is null do nothing;
end
$$;

create or replace function autopost.end_alert(p_workspace_id text, p_kind text, p_subject text) returns void
language plpgsql
as $$
-- What people were told of is over.
-- Writes: alerts.
begin
	update autopost.alerts a set ended_at = autopost.now_ts()
	where a.workspace_id = p_workspace_id and a.kind = p_kind and a.subject = p_subject and a.ended_at is null;
end
$$;

create or replace function autopost.finding(p_kind text, p_subject text, p_amount numeric, p_level numeric, p_what text, p_meta jsonb default '{}') returns jsonb
language sql immutable parallel safe
as $$
-- What a look sees of one thing: how much there is of it, and from which level on people are told; a level of 0 is for never. An alert that
-- is open stays so down to four fifths of its level.
select jsonb_build_object('kind', p_kind, 'subject', p_subject, 'amount', p_amount, 'raised', p_level > 0 and p_amount >= p_level,
	'what', p_what, 'meta', p_meta)
where p_level > 0 and p_amount >= p_level * 0.8 and p_amount > 0
$$;

create or replace function autopost.settle_alerts(p_workspace_id text, p_look text, p_findings jsonb[]) returns jsonb
language plpgsql
as $$
-- Brings the alerts of a look in line with what it sees; a null is nothing seen. Returns {"raised", "ended", "open"}.
-- Locks: alerts (kind, subject). Writes: alerts.
declare
	v_now timestamptz := autopost.now_ts();
	v_finding jsonb;
	v_kind record;
	v_raised int := 0;
	v_ended int;
	v_calm interval := case when p_look <> 'integrity' then autopost.setting_interval('alert_calm_seconds') else '0' end; -- which looks once a day
begin
	p_findings := array_remove(p_findings, null);
	perform 1 from autopost.alerts a
	where a.workspace_id = p_workspace_id and a.look = p_look and a.ended_at is null
	order by a.kind, a.subject for no key update of a;
	for v_finding in select f.value from unnest(p_findings) f (value) order by f.value ->> 'kind', f.value ->> 'subject' loop
		select * into v_kind from autopost.alert_kinds() k where k.kind = v_finding ->> 'kind';
		update autopost.alerts a
		set amount = (v_finding ->> 'amount')::numeric, what = autopost.redact(v_finding ->> 'what'), meta = autopost.redact(v_finding -> 'meta'), calm_since = null
		where a.workspace_id = p_workspace_id and a.kind = v_kind.kind and a.subject = v_finding ->> 'subject' and a.ended_at is null;
		continue when found or v_finding -> 'raised' <> 'true';
		insert into autopost.alerts (workspace_id, alert_id, kind, subject, raised_at, meta, severity, what, remedy, amount, look)
		values (p_workspace_id, autopost.new_id(), v_kind.kind, v_finding ->> 'subject', v_now, autopost.redact(v_finding -> 'meta'), v_kind.severity,
			autopost.redact(v_finding ->> 'what'), autopost.alert_remedy(v_kind.kind, p_workspace_id, v_finding ->> 'subject'), (v_finding ->> 'amount')::numeric, p_look)
		on conflict (workspace_id, kind, subject) where ended_at is null do nothing;
		v_raised := v_raised + 1;
	end loop;
	update autopost.alerts a
	set calm_since = coalesce(a.calm_since, v_now),
		ended_at = case when coalesce(a.calm_since, v_now) <= v_now - v_calm then v_now end
	where a.workspace_id = p_workspace_id and a.look = p_look and a.ended_at is null
	and not exists (select 1 from unnest(p_findings) f (value) where f.value ->> 'kind' = a.kind and f.value ->> 'subject' = a.subject);
	select count(*) into v_ended from autopost.alerts a where a.workspace_id = p_workspace_id and a.look = p_look and a.ended_at = v_now;
	return jsonb_build_object('raised', v_raised, 'ended', v_ended, 'open', (
		select count(*) from autopost.alerts a where a.workspace_id = p_workspace_id and a.look = p_look and a.ended_at is null));
end
$$;

create or replace function autopost.is_looking(p_workspace_id text, p_look text) returns boolean
language sql volatile
as $$
-- Whether this transaction alone looks; another one that is at it sees the same.
select pg_try_advisory_xact_lock(hashtextextended(concat_ws('|', p_look, p_workspace_id), 33))
$$;
