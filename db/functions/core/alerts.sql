create or replace function autopost.alert_kinds() returns table (kind text, severity text, title text, remedy text)
language sql immutable parallel safe
as $$
-- Purpose: every kind of alert with its severity, its default text and the commands that help.
--          {workspace} and {alert} stand for its own ids, {name} for the part of its subject after
--          the colon, {code} for meta.code.
values
	('dead', 'error', 'deliveries are dead',
		'see why: autopost deliveries list --status dead --workspace {workspace}; when the cause is fixed: ' ||
		'autopost deliveries requeue --code CODE --workspace {workspace} --reason fixed; or keep them: ' ||
		'autopost alert ack {alert} --workspace {workspace} --reason seen'),
	('dead_many', 'critical', 'very many deliveries are dead',
		'stop what fills the queue, find the cause: autopost deliveries list --status dead --workspace ' ||
		'{workspace}; then: autopost deliveries requeue --code CODE --workspace {workspace} --reason fixed'),
	('failed_permanent', 'error', 'deliveries fail for good',
		'see why: autopost deliveries list --status failed_permanent --workspace {workspace}; when the cause ' ||
		'is fixed: autopost deliveries requeue --code CODE --workspace {workspace} --reason fixed'),
	('paused_channels', 'warning', 'channels are paused',
		'see which, and why: autopost channel list --workspace {workspace}; when the cause is fixed: autopost ' ||
		'channel resume ID --workspace {workspace} --reason fixed'),
	('channel_refused', 'error', 'the platform refuses a channel',
		'fix what the platform reports (is the bot in the chat, and may it post?): autopost channel check ' ||
		'{name} --workspace {workspace}; then: autopost channel resume {name} --workspace {workspace} --reason ' ||
		'fixed; and the failed deliveries: autopost deliveries requeue --channel {name} --code {code} ' ||
		'--workspace {workspace} --reason fixed'),
	('oldest_due', 'error', 'posts are late',
		'does every daemon run? autopost doctor; what is slow, and for how long: autopost forecast --workspace ' ||
		'{workspace}; raise its limit: autopost channel set ID --rate-rps RPS --workspace {workspace} --reason ' ||
		'slow (or autopost group set), or start another autopost serve'),
	('outcome_held', 'error', 'posts wait for a person: their outcome is unknown',
		'open the channel. A post is there: autopost deliveries resolve ID --found MESSAGE_ID --workspace ' ||
		'{workspace} --reason seen; it is not: autopost deliveries resolve ID --absent --workspace {workspace} ' ||
		'--reason missing'),
	('unknown_outcome', 'error', 'the outcome of posts is unknown',
		'open the channel; list the posts: autopost deliveries list --status failed_permanent --workspace ' ||
		'{workspace}. A post is missing: autopost deliveries requeue ID --workspace {workspace} --reason ' ||
		'missing; all are there: autopost alert ack {alert} --workspace {workspace} --reason seen'),
	('auth_lost', 'critical', 'the platform refuses the credential; its channels pause',
		'get a new one from the platform, then: autopost credential set {name} --from-file FILE --workspace ' ||
		'{workspace} --reason renewed (X and YouTube: autopost credential link {name}); its channels resume. ' ||
		'Failed deliveries: autopost credential requeue --credential {name} --workspace {workspace} --reason ' ||
		'renewed'),
	('credential_missing', 'error', 'a credential has no secret; the posts of its channels wait',
		'get the secret from the platform, then: autopost credential set {name} --from-file FILE --workspace ' ||
		'{workspace} --reason new (a new one: with --platform PLATFORM; X and YouTube: autopost credential link ' ||
		'{name}); its channels go on automatically'),
	('auth_expiring', 'warning', 'a credential expires soon',
		'get a new one from the platform, then: autopost credential set {name} --from-file FILE --workspace ' ||
		'{workspace} --reason renewed (X and YouTube: autopost credential link {name})'),
	('auth_not_renewed', 'error', 'a credential cannot be renewed',
		'see the error: autopost credential show {name} --workspace {workspace}; if it persists: autopost ' ||
		'credential link {name} --same-app --workspace {workspace} --reason renewed'),
	('moderation_backlog', 'warning', 'posts wait for a decision',
		'decide on them in the moderation queue of workspace {workspace}'),
	('moderation_chat_failing', 'error', 'moderators are not asked in a chat',
		'see the error: autopost moderation chat list --workspace {workspace}; is the bot in the chat, and may it ' ||
		'post? Decide meanwhile: autopost moderation list --workspace {workspace}'),
	('publish_job_failed', 'error', 'file jobs failed',
		'see why: autopost filebus explain {name} --workspace {workspace}; when the cause is fixed: autopost ' ||
		'filebus approve {name} --platform PLATFORM --workspace {workspace} --reason fixed'),
	('publish_job_unknown', 'error', 'it is unknown if a file job is published',
		'look at the channel: autopost filebus explain {name} --workspace {workspace} says which delivery to ' ||
		'resolve, or which state file to correct or remove'),
	('submission_failed', 'error', 'posts failed before they could be queued',
		'see why: autopost submissions list --status failed --workspace {workspace}; when the cause is fixed: ' ||
		'autopost submissions retry ID --workspace {workspace} --reason fixed; or keep them: autopost alert ack ' ||
		'{alert} --workspace {workspace} --reason seen'),
	('source_failing', 'warning', 'a source cannot be polled',
		'check its answer: autopost source test {name} --workspace {workspace}; correct it: autopost source ' ||
		'set {name} --url URL --workspace {workspace} --reason corrected; poll it now: autopost source fetch ' ||
		'{name} --workspace {workspace} --reason fixed'),
	('source_stopped', 'error', 'a source is stopped',
		'correct its address: autopost source set {name} --url URL --workspace {workspace} --reason corrected; ' ||
		'then: autopost source enable {name} --workspace {workspace} --reason fixed; or disable it: autopost ' ||
		'source disable {name} --workspace {workspace} --reason gone'),
	('breaker_open', 'error', 'the platform of a rate group fails, its breaker is open',
		'wait if the platform is down (see its status page): it is probed automatically: autopost group list ' ||
		'--workspace {workspace}. If it is up: can this machine reach it? autopost doctor'),
	('orphans', 'error', 'rows refer to nothing',
		'run: autopost verify --workspace {workspace}; keep its output and compare with the last backup'),
	('audit_chain', 'critical', 'the audit log was changed, or rows of it are missing',
		'run: autopost audit verify --workspace {workspace}; compare with the heads in the daemon''s log ' ||
		'(monitor.audit_head)'),
	('platform_wait', 'error', 'the platform does not accept posts for a long time',
		'read the answer of the platform: a used-up quota ends automatically, credits and spending limits are ' ||
		'raised at the platform; the end of the wait: autopost group list --workspace {workspace}, autopost ' ||
		'channel list --workspace {workspace}'),
	('alert_target_failing', 'error', 'alerts do not reach a target',
		'see the error: autopost alert target list --workspace {workspace}; fix it, then: autopost alert ' ||
		'target test {name} --workspace {workspace} --reason fixed'),
	('alerts_undelivered', 'error', 'the alerts of a workspace reach nobody',
		'see the error: autopost alert target list --workspace {name}; fix it, or add a target with another ' ||
		'credential: autopost alert target add'),
	('rights_lost', 'error', 'the bot may no longer post in its chat; its posts wait',
		'restore its rights in the chat: the channel resumes automatically; or disable it: autopost channel ' ||
		'disable {name} --workspace {workspace} --reason gone'),
	('subscription', 'error', 'a platform does not send updates of a bot',
		'see the error here; compare AUTOPOST_PUBLIC_URL with the address that the platform can reach'),
	('webhook_failing', 'error', 'a result webhook does not accept requests',
		'fix its receiver, then: autopost webhook test {name} --workspace {workspace} --reason fixed; waiting ' ||
		'requests are sent automatically'),
	('webhook_disabled', 'error', 'a result webhook is disabled',
		'fix its receiver; then: autopost webhook enable {name} --workspace {workspace} --reason ' ||
		'fixed; missed events: autopost webhook replay {name} --since TIME --workspace {workspace} --reason ' ||
		'fixed'),
	('bot_given_up', 'error', 'messages to the bot were given up',
		'see which chats: autopost bot chats --workspace {workspace}; correct the rule or the template that the ' ||
		'error names, and answer these customers yourself; then: autopost alert ack {alert} --workspace ' ||
		'{workspace} --reason answered'),
	('bot_errors', 'error', 'messages to the bot cannot be processed',
		'see the error here; check the rules: autopost bot lint --workspace {workspace}; return to the version ' ||
		'before: autopost bot rules enable RULE --version N --workspace {workspace} --reason wrong; the messages ' ||
		'are tried five times'),
	('bot_replies_failing', 'error', 'replies of a bot are not sent',
		'see the error here; is its credential valid? autopost credential list --workspace {workspace}; does ' ||
		'the platform answer? autopost group list --workspace {workspace}; replies are tried again automatically'),
	('bot_fallback_rate', 'warning', 'many messages to the bot have no rule',
		'see the questions: autopost bot report --workspace {workspace}; add keywords or a rule: autopost bot ' ||
		'rules set RULE --keywords WORDS --workspace {workspace} --reason unmatched'),
	('bot_unmatched', 'warning', 'customers often ask what no rule answers',
		'see the question: autopost bot report --since 1d --workspace {workspace}; add a rule: autopost bot rules ' ||
		'set RULE --keywords WORDS --response-template TEXT --workspace {workspace} --reason unmatched; or ' ||
		'leave it: autopost alert ack {alert} --workspace {workspace} --reason seen'),
	('no_dispatcher', 'critical', 'no daemon sends posts',
		'start one: autopost serve; if it stops, read its log'),
	('daemon_lost', 'error', 'a daemon stopped, others still run',
		'start it again on its machine: autopost serve; its log has the reason. If it stays off: autopost ' ||
		'alert ack {alert} --workspace {workspace} --reason gone'),
	('duty_failing', 'error', 'the monitor cannot do a duty',
		'see the error here and in the daemon''s log (monitor.failed); run: autopost doctor'),
	('stage_panicked', 'error', 'a stage of a daemon panicked and was started again',
		'see the stack in the daemon''s log (stage.panicked), and report it with the version: autopost --version; ' ||
		'the work that it lost is repeated after its lease'),
	('disk_low', 'critical', 'a disk is full or nearly full',
		'free space or use a larger disk: docs/operate/disks.md'),
	('clock_skew', 'error', 'the clocks of a daemon and of the database differ',
		'turn on time synchronisation (NTP) on both machines, for example: timedatectl set-ntp true; then see: ' ||
		'autopost doctor'),
	('clock_jumped', 'error', 'the clock of the database has jumped',
		'synchronise the clock of its machine by NTP, for example: timedatectl set-ntp true; waits keep their ' ||
		'length, dates set by people stay'),
	('partitions_missing', 'critical', 'event partitions for the next days are missing',
		'run: autopost doctor; the monitor adds partitions if it may create tables'),
	('events_without_partition', 'warning', 'events are in the default partition',
		'the monitor was late; retention removes them; see: autopost doctor'),
	('config_differs', 'warning', 'daemons are configured differently',
		'give all daemons the same environment (docs/reference/config.md), and restart them')
$$;

create or replace function autopost.alert_remedy(p_alert autopost.alerts) returns text
language sql immutable parallel safe
as $$
-- Purpose: the remedy of an alert with its placeholders filled in.
select coalesce((
	select replace(replace(replace(replace(k.remedy, '{workspace}', p_alert.workspace_id), '{alert}',
		p_alert.alert_id::text),
		'{name}', substr(p_alert.subject, strpos(p_alert.subject, ':') + 1)), '{code}',
			coalesce(p_alert.meta ->> 'code', 'CODE'))
	from autopost.alert_kinds() k where k.kind = p_alert.kind), 'run: autopost doctor')
$$;

create or replace function autopost.open_alert(p_alert autopost.alerts) returns void
language plpgsql
as $$
-- Purpose: raises an alert unless one of the same kind and subject is open. The caller sets kind,
--          subject, what and the like.
-- Writes:  alerts.
begin
	p_alert.alert_id := autopost.new_id();
	p_alert.raised_at := autopost.now_ts();
	p_alert.what := autopost.redact(p_alert.what);
	p_alert.meta := autopost.redact(p_alert.meta);
	p_alert.error := autopost.redact(p_alert.error);
	p_alert.severity := coalesce((select k.severity from autopost.alert_kinds() k where k.kind = p_alert.kind),
		'error');
	insert into autopost.alerts (workspace_id, alert_id, kind, subject, raised_at, error, meta, severity, what, remedy,
		amount, look)
	values (p_alert.workspace_id, p_alert.alert_id, p_alert.kind, p_alert.subject, p_alert.raised_at, p_alert.error,
		p_alert.meta, p_alert.severity, p_alert.what,
		autopost.alert_remedy(p_alert), coalesce(p_alert.amount, 1), p_alert.look)
	on conflict (workspace_id, kind, subject) where ended_at is null do nothing;
	if found then
		perform pg_notify('autopost_wake', 'alerts');
	end if;
end
$$;

create or replace function autopost.raise_alert(p_workspace_id text, p_kind text, p_subject text, p_error jsonb,
	p_meta jsonb) returns void
language plpgsql
as $$
-- Purpose: raises an alert that the caller ends later by end_alert. Does nothing while it is open.
-- Writes:  alerts.
declare
	v_alert autopost.alerts;
begin
	v_alert.workspace_id := p_workspace_id;
	v_alert.kind := p_kind;
	v_alert.subject := p_subject;
	v_alert.error := p_error - 'payload_ref';
	v_alert.meta := p_meta;
	v_alert.what := concat_ws(': ', p_subject, coalesce((select k.title from autopost.alert_kinds() k
		where k.kind = p_kind), p_kind), left(p_error ->> 'message', 200));
	perform autopost.open_alert(v_alert);
end
$$;

create or replace function autopost.end_alert(p_workspace_id text, p_kind text, p_subject text) returns void
language plpgsql
as $$
-- Purpose: ends the open alert of a kind and subject.
-- Writes:  alerts.
declare
	v_now timestamptz := autopost.now_ts();
begin
	update autopost.alerts a set ended_at = v_now
	where a.workspace_id = p_workspace_id and a.kind = p_kind and a.subject = p_subject and a.ended_at is null;
	if found then
		perform pg_notify('autopost_wake', 'alerts');
	end if;
end
$$;

create or replace function autopost.finding(p_kind text, p_subject text, p_amount numeric, p_level numeric, p_what text,
	p_meta jsonb default '{}') returns jsonb
language plpgsql immutable parallel safe
as $$
-- Purpose: one finding of a check: the amount, and the level from which it is an alert. Level 0
--          means never. An open alert stays open down to four fifths of its level.
begin
	return (
		select jsonb_build_object('kind', p_kind, 'subject', p_subject, 'amount', p_amount, 'raised', p_level > 0
			and p_amount >= p_level,
			'what', p_what, 'meta', p_meta)
		where p_level > 0 and p_amount >= p_level * 0.8 and p_amount > 0);
end
$$;

create or replace function autopost.settle_alerts(p_workspace_id text, p_look text, p_findings jsonb[]) returns jsonb
language plpgsql
as $$
-- Purpose: raises, updates and ends the alerts of a look by its findings. Null findings are
--          ignored.
-- Returns: {"raised", "ended", "open"}.
-- Locks:   alerts (kind, subject).
-- Writes:  alerts.
declare
	v_now timestamptz := autopost.now_ts();
	v_finding jsonb;
	v_alert autopost.alerts;
	v_raised int := 0;
	v_ended int;
	-- the integrity check runs once a day
	v_calm interval := case when p_look <> 'integrity'
		then autopost.setting_interval('alert_calm_seconds') else '0' end;
	v_calm_from timestamptz := v_now - v_calm;
begin
	p_findings := array_remove(p_findings, null);
	perform 1 from autopost.alerts a
	where a.workspace_id = p_workspace_id and a.look = p_look and a.ended_at is null
	order by a.kind, a.subject for no key update of a;
	for v_finding in select f.value from unnest(p_findings) f (value)
		order by f.value ->> 'kind', f.value ->> 'subject' loop
		v_alert := jsonb_populate_record(null::autopost.alerts,
			v_finding || jsonb_build_object('workspace_id', p_workspace_id, 'look', p_look));
		update autopost.alerts a
		set amount = v_alert.amount, what = autopost.redact(v_alert.what), meta = autopost.redact(v_alert.meta),
			calm_since = null
		where a.workspace_id = p_workspace_id and a.kind = v_alert.kind and a.subject = v_alert.subject
			and a.ended_at is null;
		continue when found or v_finding -> 'raised' <> 'true';
		perform autopost.open_alert(v_alert);
		v_raised := v_raised + 1;
	end loop;
	update autopost.alerts a
	set calm_since = coalesce(a.calm_since, v_now),
		ended_at = case when coalesce(a.calm_since, v_now) <= v_calm_from then v_now end
	where a.workspace_id = p_workspace_id and a.look = p_look and a.ended_at is null
	and not exists (select 1 from unnest(p_findings) f (value) where f.value ->> 'kind' = a.kind
		and f.value ->> 'subject' = a.subject);
	select count(*) into v_ended from autopost.alerts a where a.workspace_id = p_workspace_id and a.look = p_look
		and a.ended_at = v_now;
	return jsonb_build_object('raised', v_raised, 'ended', v_ended, 'open', (
		select count(*) from autopost.alerts a where a.workspace_id = p_workspace_id and a.look = p_look
			and a.ended_at is null));
end
$$;

create or replace function autopost.is_looking(p_workspace_id text, p_look text) returns boolean
language sql volatile
as $$
-- Purpose: true if this transaction got the lock of a look. Another transaction already runs the
--          same checks otherwise.
select autopost.try_turn(concat_ws('|', 'look', p_look, p_workspace_id))
$$;
