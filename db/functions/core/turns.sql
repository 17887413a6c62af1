-- Locks of work that only one transaction does at a time. They are rows of the owner, because any login may
-- take any advisory lock.

create or replace function autopost.take_turn(p_name text) returns void
language plpgsql
as $$
-- Purpose: waits for the lock p_name and holds it until the end of the transaction.
-- Locks:   turns.
-- Writes:  turns.
begin
	insert into autopost.turns (name) values (p_name) on conflict (name) do nothing;
	perform 1 from autopost.turns t where t.name = p_name for update;
end
$$;

create or replace function autopost.try_turn(p_name text) returns boolean
language plpgsql
as $$
-- Purpose: as take_turn, without a wait: false if another transaction holds the lock.
-- Locks:   turns.
-- Writes:  turns.
begin
	if not exists (select 1 from autopost.turns t where t.name = p_name) then
		insert into autopost.turns (name) values (p_name) on conflict (name) do nothing;
	end if;
	perform 1 from autopost.turns t where t.name = p_name for update skip locked;
	return found;
end
$$;
