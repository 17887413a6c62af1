-- +goose Up
-- What could go wrong without anybody being told: posts that are held for a person, a receiver that is gone, a daemon that died.

-- Deliveries whose outcome nobody knows and that wait for a person's word (settle_unknown under hold).
create index deliveries_held on autopost.deliveries (workspace_id, channel_id) where status = 'retry' and next_retry_at = 'infinity';

-- A run that ended by itself is missed by nobody. host is the machine of the daemon.
alter table autopost.dispatch_runs add column host text, add column ended_at timestamptz;
drop function if exists autopost.touch_run(text); -- it tells its host, and its end

insert into autopost.settings (key, value, default_value, meaning) values
	('alert_webhook_failing_seconds', '900', '900', 'how long all calls of a result webhook may fail before people are told; 0 for never'),
	('alert_daemon_lost_hours', '24', '24', 'for how long people are told of a daemon that fell silent while others go on; 0 for never');

-- With the pauses growing between polls, five failures of a feed that is asked every five minutes took 75 minutes; three take 15.
update autopost.settings set value = '3' where key = 'alert_source_failures' and value = default_value;
update autopost.settings set default_value = '3' where key = 'alert_source_failures';
