create or replace function autopost.alert_kinds() returns table (kind text, severity text, title text, remedy text)
language sql immutable parallel safe
as $$
-- Every alert that there is: how bad it is, what it says where nobody says more, and what to do: commands as they are typed. {workspace} and {alert}
-- stand for its own, {name} for what stands behind the colon of its subject, {code} for that of its meta.
values
	('dead', 'error', 'deliveries are dead', 'see why: autopost deliveries list --status dead --workspace {workspace}; when the cause is gone: autopost deliveries requeue --code CODE --workspace {workspace} --reason mended; or let them be: autopost alert ack {alert} --workspace {workspace} --reason seen'),
	('dead_many', 'critical', 'very many deliveries are dead', 'stop what fills the queue, find the cause: autopost deliveries list --status dead --workspace {workspace}; then: autopost deliveries requeue --code CODE --workspace {workspace} --reason mended'),
	('failed_permanent', 'error', 'deliveries fail for good', 'see why: autopost deliveries list --status failed_permanent --workspace {workspace}; when the cause is gone: autopost deliveries requeue --code CODE --workspace {workspace} --reason mended'),
	('paused_channels', 'warning', 'channels are paused', 'see which, and why: autopost channel list --workspace {workspace}; when the cause is gone: autopost channel resume ID --workspace {workspace} --reason mended'),
	('channel_refused', 'error', 'the platform refuses a channel', 'put right what the platform says (is the bot in the chat, and may it post?): autopost channel check {name} --workspace {workspace}; then: autopost channel resume {name} --workspace {workspace} --reason mended; and what failed: autopost deliveries requeue --channel {name} --code {code} --workspace {workspace} --reason mended'),
	('oldest_due', 'error', 'posts are late', 'does every daemon run? autopost doctor; what is slow, and for how long: autopost forecast --workspace {workspace}; raise its limit: autopost channel set ID --rate-rps RPS --workspace {workspace} --reason slow (or autopost group set), or start another autopost serve'),
	('outcome_held', 'error', 'posts wait for a person: nobody knows whether they were published', 'look into the channel. A post is there: autopost deliveries resolve ID --found MESSAGE_ID --workspace {workspace} --reason seen; it is not: autopost deliveries resolve ID --absent --workspace {workspace} --reason missing'),
	('unknown_outcome', 'error', 'nobody knows whether posts were published', 'look into the channel; which: autopost deliveries list --status failed_permanent --workspace {workspace}. A post is missing: autopost deliveries requeue ID --workspace {workspace} --reason missing; all are there: autopost alert ack {alert} --workspace {workspace} --reason seen'),
	('auth_lost', 'critical', 'the platform refuses it; its channels pause, their posts wait', 'get another from the platform, then: autopost credential set {name} --from-file FILE --workspace {workspace} --reason renewed (X and YouTube: autopost credential link {name}); its channels go on. What failed: autopost credential requeue --credential {name} --workspace {workspace} --reason renewed'),
	('auth_expiring', 'warning', 'a credential expires soon', 'get another from the platform, then: autopost credential set {name} --from-file FILE --workspace {workspace} --reason renewed (X and YouTube: autopost credential link {name})'),
	('auth_not_renewed', 'error', 'a credential cannot be renewed', 'see the error: autopost credential show {name} --workspace {workspace}; if it stays: autopost credential link {name} --same-app --workspace {workspace} --reason renewed'),
	('moderation_backlog', 'warning', 'posts wait for a decision', 'decide on them in the moderation queue of workspace {workspace}'),
	('source_failing', 'warning', 'a source cannot be polled', 'see what comes: autopost source test {name} --workspace {workspace}; correct it: autopost source set {name} --url URL --workspace {workspace} --reason corrected; ask it at once: autopost source fetch {name} --workspace {workspace} --reason mended'),
	('source_stopped', 'error', 'a source is polled no more', 'correct its address: autopost source set {name} --url URL --workspace {workspace} --reason corrected; then: autopost source enable {name} --workspace {workspace} --reason mended; or be rid of it: autopost source disable {name} --workspace {workspace} --reason gone'),
	('breaker_open', 'error', 'the platform of a rate group fails, its breaker is open', 'nothing, if the platform is down (see its status page): it is tried again and again, and posts go on by themselves: autopost group list --workspace {workspace}. If it is up: can this machine reach it? autopost doctor'),
	('orphans', 'error', 'rows refer to nothing', 'run: autopost verify --workspace {workspace}; keep its output and compare with the last backup'),
	('audit_chain', 'critical', 'the audit log was changed, or rows of it are missing', 'run: autopost verify --workspace {workspace}; compare with the heads in the daemon''s log (monitor.audit_head)'),
	('alert_target_failing', 'error', 'people cannot be told of alerts', 'see the error: autopost alert target list --workspace {workspace}; mend it, then: autopost alert target test {name} --workspace {workspace} --reason mended'),
	('rights_lost', 'error', 'the bot may not post in its chat any more; its posts wait', 'give it back its rights in the chat: the channel goes on by itself; or be rid of it: autopost channel set {name} --enabled false --workspace {workspace} --reason gone'),
	('subscription', 'error', 'a platform does not tell what happens to a bot', 'see the error here; compare AUTOPOST_PUBLIC_URL with the address that the platform can reach'),
	('webhook_failing', 'error', 'a result webhook does not take what it is told', 'mend its receiver, then: autopost webhook test {name} --workspace {workspace} --reason mended; what waits comes by itself'),
	('webhook_disabled', 'error', 'it was disabled; it is told nothing', 'mend its receiver; then: autopost webhook set {name} --enabled true --workspace {workspace} --reason mended; what it missed: autopost webhook replay {name} --since TIME --workspace {workspace} --reason mended'),
	('no_dispatcher', 'critical', 'no daemon sends posts', 'start it where it should run: autopost serve; see its log if it ends by itself'),
	('daemon_lost', 'error', 'a daemon died, others go on', 'start it again where it ran: autopost serve; its log says why it ended. If it is to stay away: autopost alert ack {alert} --workspace {workspace} --reason gone'),
	('duty_failing', 'error', 'the monitor cannot do a duty', 'see the error here and in the daemon''s log (monitor.failed); run: autopost doctor'),
	('disk_low', 'critical', 'a disk is nearly full, or is', 'make room there, or give it a larger disk, before it takes nothing any more: docs/operate/disks.md'),
	('clock_skew', 'error', 'the clocks of a daemon and of the database differ', 'switch on time synchronisation (NTP) on both machines, as by: timedatectl set-ntp true; then see: autopost doctor'),
	('clock_jumped', 'error', 'the clock of the database has jumped', 'have the clock of its machine kept by NTP, as by: timedatectl set-ntp true; what waited waits as long as it was to, dates that people set stay'),
	('partitions_missing', 'critical', 'there is no room for the events of the days to come', 'run: autopost doctor; the monitor makes partitions when it may create tables'),
	('events_without_partition', 'warning', 'events lie in the default partition', 'the monitor was late; they go with time, see: autopost doctor'),
	('config_differs', 'warning', 'daemons are configured differently', 'give all daemons the same environment (docs/reference/config.md), and restart them')
$$;

create or replace function autopost.alert_remedy(p_alert autopost.alerts) returns text
language sql immutable parallel safe
as $$
-- What to do about an alert.
select coalesce((
	select replace(replace(replace(replace(k.remedy, '{workspace}', p_alert.workspace_id), '{alert}', p_alert.alert_id::text),
		'{name}', substr(p_alert.subject, strpos(p_alert.subject, ':') + 1)), '{code}', coalesce(p_alert.meta ->> 'code', 'CODE'))
	from autopost.alert_kinds() k where k.kind = p_alert.kind), 'run: autopost doctor')
$$;

create or replace function autopost.open_alert(p_alert autopost.alerts) returns void
language plpgsql
as $$
-- An alert as far as it is given: kind, subject, what, …; it is raised now, unless there is an open one.
-- Writes: alerts.
begin
	p_alert.alert_id := autopost.new_id();
	p_alert.raised_at := autopost.now_ts();
	p_alert.what := autopost.redact(p_alert.what);
	p_alert.meta := autopost.redact(p_alert.meta);
	p_alert.error := autopost.redact(p_alert.error);
	p_alert.severity := coalesce((select k.severity from autopost.alert_kinds() k where k.kind = p_alert.kind), 'error');
	insert into autopost.alerts (workspace_id, alert_id, kind, subject, raised_at, error, meta, severity, what, remedy, amount, look)
	values (p_alert.workspace_id, p_alert.alert_id, p_alert.kind, p_alert.subject, p_alert.raised_at, p_alert.error, p_alert.meta, p_alert.severity, p_alert.what,
		autopost.alert_remedy(p_alert), coalesce(p_alert.amount, 1), p_alert.look)
	on conflict (workspace_id, kind, subject) where ended_at is null do nothing;
	if found then
		perform pg_notify('autopost_wake', 'alerts');
	end if;
end
$$;

create or replace function autopost.raise_alert(p_workspace_id text, p_kind text, p_subject text, p_error jsonb, p_meta jsonb) returns void
language plpgsql
as $$
-- Tells people of something, once until it has ended. Whoever raises it ends it.
-- Writes: alerts.
declare
	v_alert autopost.alerts;
begin
	v_alert.workspace_id := p_workspace_id;
	v_alert.kind := p_kind;
	v_alert.subject := p_subject;
	v_alert.error := p_error;
	v_alert.meta := p_meta;
	v_alert.what := concat_ws(': ', p_subject, coalesce((select k.title from autopost.alert_kinds() k where k.kind = p_kind), p_kind), left(p_error ->> 'message', 200));
	perform autopost.open_alert(v_alert);
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
	if found then
		perform pg_notify('autopost_wake', 'alerts');
	end if;
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
	v_alert autopost.alerts;
	v_raised int := 0;
	v_ended int;
	v_calm interval := case when p_look <> 'integrity' then autopost.setting_interval('alert_calm_seconds') else '0' end; -- which looks once a day
begin
	p_findings := array_remove(p_findings, null);
	perform 1 from autopost.alerts a
	where a.workspace_id = p_workspace_id and a.look = p_look and a.ended_at is null
	order by a.kind, a.subject for no key update of a;
	for v_finding in select f.value from unnest(p_findings) f (value) order by f.value ->> 'kind', f.value ->> 'subject' loop
		v_alert := jsonb_populate_record(null::autopost.alerts, v_finding || jsonb_build_object('workspace_id', p_workspace_id, 'look', p_look));
		update autopost.alerts a
		set amount = v_alert.amount, what = autopost.redact(v_alert.what), meta = autopost.redact(v_alert.meta), calm_since = null
		where a.workspace_id = p_workspace_id and a.kind = v_alert.kind and a.subject = v_alert.subject and a.ended_at is null;
		continue when found or v_finding -> 'raised' <> 'true';
		perform autopost.open_alert(v_alert);
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
