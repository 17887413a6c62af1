create or replace function autopost.uuid_v7_prefix(p_at timestamptz) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: the first 17 hexadecimal digits of a UUID version 7 of an instant, exact to the
--          microsecond. 15 more digits make an id.
begin
	return lpad(to_hex(floor(extract(epoch from p_at) * 1000)::bigint), 12, '0')
		|| '7' || lpad(to_hex(((extract(microseconds from p_at)::bigint % 1000) * 4)::int), 3, '0')
		|| '8';
end
$$;

create or replace function autopost.uuid_v7_of(p_at timestamptz, p_name text) returns uuid
language sql immutable parallel safe
as $$
-- Purpose: a UUID version 7 of an instant and a name; equal for equal arguments.
select (autopost.uuid_v7_prefix(p_at) || substr(md5(p_name), 1, 15))::uuid
$$;

create or replace function autopost.first_id_at(p_at timestamptz) returns uuid
language sql immutable parallel safe
as $$
-- Purpose: the lowest id of an instant, for lists by id that start or end there. An instant that no id can have counts
--          as the nearest one that it can.
select (autopost.uuid_v7_prefix(case when p_at < 'epoch' then 'epoch' when p_at > '9999-12-31Z' then '9999-12-31Z'
	else p_at end) || repeat('0', 15))::uuid
$$;

create or replace function autopost.sent_late(p_delivery_id uuid, p_sent_at timestamptz) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true if a post was sent an hour or more after its id was made, or an hour or more before it
--          (a clock was set back). The index deliveries_sent_late has the same expression.
select abs(date_part('epoch', p_sent_at - to_timestamp(
	('x' || left(replace(p_delivery_id::text, '-', ''), 12))::bit(48)::bigint / 1000::double precision))) >= 3600
$$;

create or replace function autopost.new_id() returns uuid
language sql volatile parallel safe
as $$
-- Purpose: a new UUID version 7.
select autopost.uuid_v7_of(clock_timestamp(), gen_random_uuid()::text)
$$;
