create or replace function autopost.guard_transition() returns trigger
language plpgsql
as $$
-- Purpose: refuses every change of a delivery's status that the table of transitions does not
--          allow. The trigger's condition passes two without a call: sending to sent, and queued or
--          retry to sending with a new token and attempt (a claim in one statement). dead or
--          failed_permanent to retry needs the flag of manual_requeue.
-- Raises:  AP004.
begin
	if (old.status, new.status) in (
		('queued', 'claimed'), ('retry', 'claimed'), ('queued', 'deduped'), ('retry', 'deduped'),
		('queued', 'failed_permanent'), ('retry', 'failed_permanent'), ('queued', 'dead'), ('retry', 'dead'),
		('claimed', 'sending'), ('claimed', 'queued'), ('claimed', 'retry'),
		('sending', 'retry'), ('sending', 'failed_permanent'), ('sending', 'dead'))
	or (old.status = 'retry' and new.status = 'sent' and old.unknown_outcomes > 0
		and current_setting('autopost.manual_act', true) = 'resolve_unknown')
	or (old.status in ('dead', 'failed_permanent') and new.status = 'retry'
		and current_setting('autopost.manual_act', true) = 'manual_requeue')
	then
		return null;
	end if;
	raise exception 'delivery % must not change from % to %', old.delivery_id, old.status, new.status
		using errcode = 'AP004', hint = 'use manual_requeue, commit_outcome or the runbook functions';
end
$$;

-- The condition passes the most frequent transitions: a function call would cost more than the update. The trigger runs
-- after the update: PostgreSQL locks each row once more for a trigger before it, whatever its condition.
create or replace trigger guard_transition after update of status on autopost.deliveries
	for each row when (new.status <> old.status
		and not (old.status = 'sending' and new.status = 'sent')
		and not (old.status in ('queued', 'retry') and new.status = 'sending' and new.attempt = old.attempt + 1
			and new.claim_token is distinct from old.claim_token))
	execute function autopost.guard_transition();

create or replace function autopost.guard_initial_status() returns trigger
language plpgsql
as $$
-- Purpose: a new delivery is queued, deduped or failed_permanent; a backfilled one may be sent.
-- Raises:  AP004.
begin
	raise exception 'a new delivery must not be %', new.status
		using errcode = 'AP004', hint = 'use enqueue_messages_and_deliveries';
end
$$;

create or replace trigger guard_initial_status before insert on autopost.deliveries
	for each row when (new.status in ('claimed', 'sending', 'retry',
		'dead')) execute function autopost.guard_initial_status();
