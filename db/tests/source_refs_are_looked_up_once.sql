begin;
\ir fake_clock.sql
\ir world.sql
select plan(7);

create function test.poll() returns text language sql as $$ select string_agg(d.source_id, ',')
	from autopost.list_due_sources('w', 10) d $$;
insert into autopost.workspaces (workspace_id, status) values ('v', 'active'), ('off', 'paused');
insert into autopost.pull_sources (workspace_id, source_id, kind, config_json) values
	('w', 'feed', 'rss', '{"url": "https://example.org/feed", "interval_seconds": 60}'), ('off', 'feed', 'rss',
		'{"url": "https://example.org/feed", "interval_seconds": 60}');
select is(autopost.ready_sources(), '{"workspaces": ["w"], "next_poll_ms": null}', 'one that was never polled is due');
select is(test.poll(), 'feed');
select is(autopost.ready_sources() -> 'workspaces', '[]', 'it is being polled');
select ok((autopost.ready_sources() ->> 'next_poll_ms')::int > 0, 'until the lease of the poll ends');
select autopost.set_pull_cursor('w', 'feed', '{}');
select is(autopost.ready_sources(), '{"workspaces": [], "next_poll_ms": 60000}');
select test.tick('60 seconds');
select is(autopost.ready_sources() -> 'workspaces', '["w"]');
update autopost.pull_sources set enabled = false;
select is(autopost.ready_sources(), '{"workspaces": [], "next_poll_ms": null}');

select * from finish();
rollback;
