-- +goose Up
-- The tags of channels are canonical, as those of messages are; from now on a trigger sees to it (lib/routing).
update autopost.channels c
set tags = t.tags
from (
	select o.workspace_id, o.channel_id, array(
		select distinct f.tag from (select btrim(lower(normalize(u.tag, NFC) collate "und-x-icu"), ' #') as tag from unnest(o.tags) u (tag)) f
		where f.tag <> '' order by f.tag) as tags
	from autopost.channels o
	where o.tags <> '{}') t
where t.workspace_id = c.workspace_id and t.channel_id = c.channel_id and t.tags <> c.tags;
