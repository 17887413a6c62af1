-- Constants of several functions. A test may replace one in its transaction.

create or replace function autopost.slot_horizon() returns interval
language sql immutable parallel safe
as $$
-- Purpose: how far ahead a slot may be reserved. Longer, and a pause or a new limit would come too late.
select interval '1 second'
$$;

create or replace function autopost.slot_tolerance() returns interval
language sql immutable parallel safe
as $$
-- Purpose: how long after its slot a call may start. A later call takes a new slot, so that spacing holds.
select interval '100 milliseconds'
$$;

create or replace function autopost.start_lead() returns interval
language sql immutable parallel safe
as $$
-- Purpose: how long before its slot a claim may already start a call. The caller waits for the slot.
select interval '5 milliseconds'
$$;

create or replace function autopost.run_silence() returns interval
language sql immutable parallel safe
as $$
-- Purpose: time without a heartbeat after which the leases of a daemon end: three heartbeats of 15 s.
select interval '45 seconds'
$$;

create or replace function autopost.clock_trust() returns interval
language sql immutable parallel safe
as $$
-- Purpose: age up to which an observation proves the database's clock. Daemons observe it every 15 s.
select interval '2 minutes'
$$;

create or replace function autopost.quota_recheck() returns interval
language sql immutable parallel safe
as $$
-- Purpose: longest time until a claim checks a used-up quota or budget again. It only bounds the delay
-- after a change that no trigger reports.
select interval '10 minutes'
$$;

create or replace function autopost.dispatch_window() returns int
language sql immutable parallel safe
as $$
-- Purpose: workspaces of one window of begin_dispatch.
select 100
$$;

create or replace function autopost.drop_window() returns interval
language sql immutable parallel safe
as $$
-- Purpose: period in which rejected requests share a run and an event: one event per minute at most.
select interval '1 minute'
$$;

create or replace function autopost.pull_hint_max() returns numeric
language sql immutable parallel safe
as $$
-- Purpose: longest delay, in seconds, that hints of a source (ttl, max-age, Retry-After) may cause: a day.
select 86400::numeric
$$;

create or replace function autopost.media_removal_time() returns interval
language sql immutable parallel safe
as $$
-- Purpose: time after which another daemon may repeat a removal from the media store. Far longer than the
-- timeout of the object store.
select interval '10 minutes'
$$;

create or replace function autopost.source_url_time() returns interval
language sql immutable parallel safe
as $$
-- Purpose: how long a platform may be given the source URL of a medium. Later the content is uploaded.
select interval '1 day'
$$;

create or replace function autopost.calendar_bound() returns int
language sql immutable parallel safe
as $$
-- Purpose: how many deliveries a calendar reads at most: about 0.1 s of a processor.
select 100000
$$;
