-- submit_post accepts one post of a person or a program, through the only endpoint unless one is named.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(16);

select test.channel('a');
create function test.submit(p_raw text, p_endpoint_id text default null) returns jsonb
language sql
as $$
select autopost.submit_post('w', p_endpoint_id, 'command', p_raw::jsonb)
$$;
select is(test.submit('{"text": "x"}') - array['run_id', 'trace_id', 'message_id', 'deliveries'],
	'{"status": "enqueued", "enqueued": 1, "deduped": 0, "invalid": 0, "skipped": 0, "fanout": "done"}');
select is((select (r.kind, r.endpoint_id, r.stats_json ->> 'enqueued', r.finished_at is not null)::text
	from autopost.ingest_runs r), '(command,in,1,t)', 'a run of its own, with its endpoint');
select is(test.submit('{"text": "x"}') ->> 'status', 'duplicate', 'the channel has it');
select is(test.submit('{"text": ""}') ->> 'status', 'rejected');
select is(test.submit('null') ->> 'status', 'rejected');
select is(test.submit('{"text": "y", "colour": "red"}') -> 'warnings', '["colour"]');
select is(test.submit('{"media": [{"type": "image", "url": "https://e.x/1.png"}]}') ->> 'status', 'accepted',
	'media are fetched first');
select is((select (s.kind, s.status)::text from autopost.submissions s), '(command,fetching)');
select is((select s.submission_id::text from autopost.submissions s), (select r.items -> 0 ->> 'submission_id'
	from autopost.ingest_runs r where r.items -> 0 ? 'submission_id'), 'the run knows it');

insert into autopost.pull_sources (workspace_id, source_id, kind) values ('w', 's', 'rss');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id)
	values ('w', 'feed', 'pull_source', 's');
select is(test.submit('{"text": "z"}') ->> 'status', 'enqueued', 'endpoints of sources are not candidates');
insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash)
	values ('w', 'cms', 'webhook_push', repeat('c', 64));
select throws_ok($$select test.submit('{"text": "x"}')$$, 'AP001',
	'argument endpoint_id: must be given, because the workspace has several: cms, in');
select is(test.submit('{"text": "zz"}', 'cms') ->> 'status', 'enqueued', 'named');
update autopost.workspace_endpoints set enabled = false where kind = 'webhook_push';
select throws_ok($$select test.submit('{"text": "x"}')$$, 'AP001',
	'argument endpoint_id: must name an enabled endpoint of kind webhook_push, and the workspace has none');
update autopost.workspace_endpoints set enabled = true where endpoint_id = 'in';
update autopost.workspaces set status = 'disabled';
select throws_ok($$select test.submit('{"text": "x"}')$$, 'AP001', 'argument workspace_id: workspace w is disabled');
update autopost.workspaces set status = 'active';
select throws_ok($$select autopost.submit_post('w', 'in', 'pull', '{"text": "x"}')$$, 'AP001');
select is((select string_agg(v.invariant, ',') from autopost.verify('w') v where v.violations > 0), null);

select * from finish();
rollback;
