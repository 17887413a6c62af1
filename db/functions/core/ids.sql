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
-- Purpose: the lowest id of an instant, for lists by id that start or end there.
select (autopost.uuid_v7_prefix(p_at) || repeat('0', 15))::uuid
$$;

create or replace function autopost.new_id() returns uuid
language sql volatile parallel safe
as $$
-- Purpose: a new UUID version 7.
select autopost.uuid_v7_of(clock_timestamp(), gen_random_uuid()::text)
$$;
