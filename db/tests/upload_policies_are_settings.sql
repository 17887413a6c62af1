-- The upload policy of a platform is listed and changed as a setting, by who may change settings, with an audit row.
begin;
\ir fake_clock.sql
\ir world.sql
select plan(13);

create function test.written(p_values jsonb, p_dry_run boolean default false) returns text
language plpgsql
as $$
begin
	return autopost.apply_settings(p_values, 'ann', 'public images', p_dry_run) #>> '{changes,0,after}';
exception when others then
	return sqlerrm;
end
$$;
create function test.stored() returns jsonb
language sql
as $$
select p.upload_policy from autopost.platforms p where p.platform = 'max'
$$;

select is((select l.value from autopost.list_settings() l where l.key = 'upload_policy_max'),
	'{"image": "upload_required", "video": "upload_required", "file": "upload_required", "audio": "upload_required", "other": "upload_required"}');
select is((select count(*)::int from autopost.list_settings() l where l.key like 'upload\_policy\_%'
	and l.value = l.default_value), (select count(*)::int from autopost.platforms), 'by default no platform fetches media');
select ok(test.written('{"upload_policy_max": {"image": "url_allowed"}}', true) like '%url_allowed%');
select is(test.stored() ->> 'image', 'upload_required', 'a dry run changes nothing');
select ok(test.written('{"upload_policy_max": {"image": "url_allowed"}, "max_attempts": 6}') is not null);
select is(test.stored() ->> 'image', 'url_allowed');
select is((select array_agg(array[l.operator, l.after #>> '{value,image}']) from autopost.admin_audit_log l
	where l.subject = 'setting:upload_policy_max'), '{{ann,url_allowed}}');
select is((select l.shown -> 'value' ->> 'image' from autopost.configuration_of('w', 'setting', null, '', 1000) l
	where l.id = 'upload_policy_max'), 'url_allowed', 'the API shows it');
select is(test.written('{"upload_policy_max": {"image": "url_allowed"}}'), null, 'once');
select alike(test.written('{"upload_policy_max": {"video": "url_allowed"}}'),
	'argument value: upload_policy_max must be an object of image, video, %, got video: "url_allowed"');
select alike(test.written('{"upload_policy_telegram": {"image": "url_allowed"}}'), '%got image: "url_allowed"');
select is(test.written('{"upload_policy_none": {}}'), 'argument key: unknown setting ''upload_policy_none''');
select test.written('{"upload_policy_max": null}');
select is(test.stored() ->> 'image', 'upload_required', 'null restores the default');

select * from finish();
rollback;
