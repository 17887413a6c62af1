create or replace function autopost.bot_of(p_workspace_id text, p_endpoint_id text, out o_auth_ref text,
	out o_platform text, out o_text_limit int)
language plpgsql stable
as $$
-- Purpose: the bot of an endpoint for updates: its credential, platform and text limit.
-- Raises:  AP001 if the endpoint is unusable or has no bot.
-- Reads:   workspace_endpoints, credential_bindings, platforms.
declare
	v_endpoint autopost.workspace_endpoints;
begin
	perform autopost.known_sender(p_workspace_id, p_endpoint_id);
	v_endpoint := autopost.known_endpoint(p_workspace_id, p_endpoint_id);
	if v_endpoint.kind <> 'bot_webhook' then
		perform autopost.raise_argument('endpoint_id', format('%s is of kind %s', p_endpoint_id, v_endpoint.kind),
			'use an endpoint of kind bot_webhook');
	end if;
	o_auth_ref := v_endpoint.meta ->> 'auth_ref';
	select b.platform, f.text_limit into o_platform, o_text_limit
	from autopost.credential_bindings b
	join autopost.platforms f on f.platform = b.platform
	where b.workspace_id = p_workspace_id and b.auth_ref = o_auth_ref and b.platform in ('telegram', 'max');
	if o_platform is null then
		perform autopost.raise_argument('endpoint_id', format('%s has no bot', p_endpoint_id),
			'set its meta.auth_ref to a credential of telegram or max');
	end if;
end
$$;

create or replace function autopost.chat_updates(p_workspace_id text, p_auth_ref text, p_chat_id text,
	p_since timestamptz, p_limit int) returns int
language plpgsql stable
as $$
-- Purpose: counts the updates of a chat after p_since, up to p_limit.
-- Reads:   bot_updates.
begin
	return (
		select count(*) from (
			select 1 from autopost.bot_updates u
			where u.workspace_id = p_workspace_id and u.auth_ref = p_auth_ref and u.chat_id = p_chat_id
				and u.received_at > p_since
			limit p_limit) x);
end
$$;

create or replace function autopost.bot_fold(p_text text) returns text
language sql immutable parallel safe
as $$
-- Purpose: a text for comparison: case folded, ё as е, one space between words.
select btrim(regexp_replace(translate(autopost.fold(p_text), 'ё', 'е'), '\s+', ' ', 'g'))
$$;

create or replace function autopost.bot_unmatched(p_kind text, p_rule_id text, p_meta jsonb) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: true for a line of the log about a message for which no rule was found: the customer got
--          the fallback text or an operator.
select p_kind = 'fallback' or p_kind = 'escalated' and p_rule_id is null and p_meta -> 'guard' is null
$$;

create or replace function autopost.bot_words(p_text text) returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the different words of a text, folded and sorted.
select array(select distinct x.word from regexp_split_to_table(autopost.bot_fold(p_text), '[^[:alnum:]]+') x (word)
	where x.word <> '' order by x.word)
$$;
