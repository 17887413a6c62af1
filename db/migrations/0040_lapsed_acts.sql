-- +goose Up
-- From now on a call of an act that came to nothing because its lease ran out is told by an event, as every other is. Those of before left
-- none: an act's attempt counts what was told of it, and the call that is under way.
update autopost.post_acts a
set attempt = t.calls + (a.status = 'sending')::int
from (
	select o.workspace_id, o.act_id, count(distinct e.meta ->> 'call') as calls
	from autopost.post_acts o
	left join autopost.events e on e.workspace_id = o.workspace_id and e.delivery_id = o.delivery_id and e.meta ->> 'act_id' = o.act_id::text
		and e.action in ('act_done', 'act_retry_scheduled', 'act_failed')
	group by o.workspace_id, o.act_id) t
where t.workspace_id = a.workspace_id and t.act_id = a.act_id
and (t.calls > 0 or a.status in ('queued', 'sending', 'retry'))
and a.attempt <> t.calls + (a.status = 'sending')::int;
