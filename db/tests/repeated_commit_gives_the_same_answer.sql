begin;
\ir fake_clock.sql
\ir world.sql
select plan(12);

select test.channel('a');
select test.say('x');
create temp table c on commit drop as select * from test.claim();
select test.start('a');

create temp table first on commit drop as
select autopost.commit_outcome('w', delivery_id, claim_token, test.failure('TRANSIENT', 'delivery', 'http_500'))
	as answer from c;
create temp table row_then on commit drop as select to_jsonb(test.row('a')) as d;
select test.tick('1 second');
create temp table again on commit drop as
select autopost.commit_outcome('w', delivery_id, claim_token, test.failure('TRANSIENT', 'delivery', 'http_500'))
	as answer from c;
select is((select answer ->> 'status' from first), 'retry');
select is((select answer - 'repeated' from again), (select answer from first),
	'a repeated commit gets the same answer');
select is((select answer -> 'repeated' from again), 'true', 'and that it was so already');
select is(to_jsonb(test.row('a')), (select d from row_then), 'without a second effect');
select is(test.count_events('retry_scheduled'), 1);
select is((autopost.commit_outcome('w', delivery_id, claim_token, test.sent('9')) ->> 'status'), 'retry',
	'another outcome under the same token changes nothing: what was settled stays') from c;
select is((test.row('a')).status, 'retry');

select test.tick('10 minutes');
select test.claimed();
select is(autopost.commit_outcome('w', delivery_id, claim_token, test.sent('1')) - 'repeated', (select answer
	from first), 'also while the next claim holds the delivery')
from c;
select is((test.row('a')).status, 'sending', 'which goes on undisturbed');
select is(test.commit('a', test.sent('5')) ->> 'status', 'sent');
select is(autopost.commit_outcome('w', delivery_id, claim_token, test.sent('1')) ->> 'reason', 'stale',
	'only the latest settled claim is remembered')
from c;
select is(test.count_events('sent'), 1);

select * from finish();
rollback;
