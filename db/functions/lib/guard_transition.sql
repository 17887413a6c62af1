create or replace function autopost.guard_transition() returns trigger
language plpgsql
as $$
-- Refuses (AP004) every move of a delivery that the table of transitions does not have, whoever tries it.
-- The trigger below lets two pass by itself: sending -> sent, and queued|retry -> sending, which is the claim passing through claimed in one
-- statement and must issue a token and an attempt.
-- dead|failed_permanent -> retry is manual_requeue only, which says so for its transaction.
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
		return new;
	end if;
	raise exception 'delivery %: % -> % is no allowed transition', old.delivery_id, old.status, new.status
		using errcode = 'AP004', hint = 'use manual_requeue, commit_outcome or the runbook functions';
end
$$;

-- The moves that happen all day long are let through here: the function costs more than the move.
create or replace trigger guard_transition before update of status on autopost.deliveries
	for each row when (new.status <> old.status
		and not (old.status = 'sending' and new.status = 'sent')
		and not (old.status in ('queued', 'retry') and new.status = 'sending' and new.attempt = old.attempt + 1 and new.claim_token is distinct from old.claim_token))
	execute function autopost.guard_transition();

create or replace function autopost.guard_initial_status() returns trigger
language plpgsql
as $$
-- A delivery begins queued, deduped, or failed_permanent by preflight (AP004 otherwise); a backfilled one may begin sent.
begin
	raise exception 'a delivery cannot begin as %', new.status
		using errcode = 'AP004', hint = 'deliveries are made by enqueue_messages_and_deliveries';
end
$$;

create or replace trigger guard_initial_status before insert on autopost.deliveries
	for each row when (new.status in ('claimed', 'sending', 'retry', 'dead')) execute function autopost.guard_initial_status();
