-- When a credential works again, one call resumes its channels and requeues the failures that it
-- caused.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(25);

create function test.refused(p_channel_id text) returns text
language sql
as $$
select test.claimed();
select autopost.start_call('w', d.delivery_id, d.claim_token) from autopost.deliveries d
	where d.channel_id = p_channel_id and d.status = 'sending';
select autopost.commit_outcome('w', d.delivery_id, d.claim_token,
	test.failure('PERMANENT', 'channel', 'max_unauthorized')) ->> 'status'
from autopost.deliveries d where d.channel_id = p_channel_id and d.status = 'sending';
$$;
create function test.land() returns void
language sql
as $$
-- Releases all other deliveries in flight.
select autopost.release_claims('w', array(select claim_token from autopost.deliveries where status = 'sending'))
$$;
create function test.again(p_dry_run boolean, p_auth_ref text default 'bot') returns jsonb
language sql
as $$
select autopost.requeue_auth_lost('w', p_auth_ref, 'ann', 'linked again', p_dry_run)
$$;
create function test.everything() returns jsonb
language sql
as $$
select jsonb_build_array((select jsonb_agg(to_jsonb(c) order by c.channel_id)
	from autopost.channels c), (select jsonb_agg(to_jsonb(d) order by d.delivery_id) from autopost.deliveries d),
	(select jsonb_agg(to_jsonb(g) order by g.channel_id) from autopost.channel_gates g), (select count(*)
		from autopost.events), (select count(*) from autopost.admin_audit_log))
$$;

select test.channel(c) from unnest('{a,b,c}'::text[]) c;
select test.channel('separate', p_rate_group => 'bot2');
update autopost.channels set on_auth_lost = 'fail' where channel_id = 'b';

-- Earlier losses and other failures are not requeued.
select test.say('long ago');
select is(test.refused('a'), 'failed_permanent');
select test.land();
select autopost.resume_channel('w', c, 'ann', 'linked again', false) from unnest('{a,b,c}'::text[]) c;
select test.tick('1 day');
update autopost.channels set max_parallel = 5 where channel_id = 'c';
select test.say('bad');
select test.round('c', test.failure('PERMANENT', 'delivery', 'validation_failed'));
select test.land();
select test.tick('1 second');
select test.posts('post', 3);
create temp table failed on commit drop as select d.delivery_id from autopost.deliveries d
	where d.status = 'failed_permanent';
select is(test.refused('a'), 'failed_permanent');
select test.land();
select is((select count(*)::int from autopost.deliveries
	where status = 'failed_permanent' and delivery_id not in (select delivery_id from failed)), 5,
	'what was called for, and the queue of b');
update autopost.deliveries set status = 'dead', finished_at = autopost.now_ts(),
	last_error = autopost.auth_lost_error('auth_lost', 'waited') where channel_id = 'c' and status in ('queued', 'retry')
	and delivery_id = (select delivery_id from autopost.deliveries
		where channel_id = 'c' and status in ('queued', 'retry') order by delivery_id limit 1);

select is(test.again(true, 'nobody'), '{"applied": false, "dry_run": true, "reason": "unknown_auth_ref"}');
create temp table before on commit drop as select test.everything() as e;
create temp table dry on commit drop as select test.again(true) as answer;
select is(test.everything(), (select e from before), 'a dry run changes nothing');
select is((select answer - 'results' - 'channels' from dry),
	'{"applied": true, "dry_run": true, "waiting": 7, "sending": 0, "requeued": 6, "more": false}');
select test.tick('1 second');
create temp table wet on commit drop as select test.again(false) as answer;
select is((select answer - 'dry_run' from wet), (select answer - 'dry_run' from dry), 'and says what the act does');
select is((select jsonb_agg(c -> 'channel_id') from wet, jsonb_array_elements(answer -> 'channels') c),
	'["a", "b", "c"]');
select is((select count(*)::int from autopost.channels where auth_held or paused_until is not null
	or error_streak <> 0), 0, 'the channels go on');
select is((select array_agg(distinct status) from autopost.deliveries
	where channel_id in ('a', 'b', 'c') and delivery_id not in (select delivery_id from failed)), '{queued,retry}',
	'and all that failed by it is put back');
select is((select array_agg(distinct status) from autopost.deliveries
	where delivery_id in (select delivery_id from failed)), '{failed_permanent}',
	'what failed before, or otherwise, is not');
select is(test.count_events('manual_requeue'), 6);
select is(test.count_events('channel_enabled'), 6);
select is((select array_agg(l.action || ' ' || l.subject order by l.seq) from autopost.admin_audit_log l
	where l.reason = 'linked again' and l.action <> 'resume_channel'),
	'{"requeue_auth_lost auth:bot","manual_requeue deliveries"}', 'it is recorded who did it');
select is(test.again(false) -> 'applied', 'false', 'a second time there is nothing to do');
select is((select array_agg(distinct c order by c) from unnest(test.claimed()) c), '{a,b,c,separate}',
	'it is claimed at once');
select is((select count(*)::int from autopost.deliveries where channel_id = 'separate' and status = 'failed_permanent'),
	0);

-- After another credential was given to a channel, by the name of the new one.
select test.land();
select is(test.refused('b'), 'failed_permanent');
insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref)
	values ('w', 'new', 'telegram', 'env:X');
create temp table rotated on commit drop as select autopost.rotate_auth('w', 'b', 'new', null, 'ann', 'linked again',
	false) as answer;
select ok((select (answer -> 'auth_lost')::int >= 4 from rotated),
	'the answer counts the failures of the old credential');
select is((select array[auth_held::text, paused_until::text] from test.channel_row('b')), '{false,null}',
	'the channel goes on');
select ok((test.channel_row('a')).auth_held, 'those that use the old one wait');
select is((test.again(false, 'new') -> 'requeued'), (select answer -> 'auth_lost' from rotated));
select is(test.again(false, 'new') -> 'channels', '[]');
select ok((test.channel_row('a')).auth_held, 'still');

select is((select jsonb_agg(v) from autopost.verify('w') v
	where v.violations > 0 and v.invariant <> 'I1' and v.invariant <> 'I24'), null,
	'the invariants hold; one row was made dead by hand');
select * from finish();
rollback;
