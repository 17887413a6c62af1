-- +goose Up
-- What claim, start and commit write for each row, made leaner (docs/decisions/0006-hot-path.md).

-- The call of an attempt is found among the events of its delivery.
drop index autopost.events_started;
-- The events of a delivery are found by the delivery, those of its message by the deliveries and by this.
drop index autopost.events_message;
create index events_message on autopost.events (workspace_id, message_id, ts) where message_id is not null and delivery_id is null;

-- Claims move next_allowed_at, which no index holds: room for that on the same page.
alter table autopost.channels set (fillfactor = 70);
alter table autopost.platform_limits set (fillfactor = 50);

-- No statistics of workspaces: a workspace is estimated at a two-hundredth of a table, whether the last ANALYZE knew it or not. One that it did
-- not know would be estimated at one row, and a plan that reads all of it looked cheap.
alter table autopost.deliveries alter column workspace_id set statistics 0;
alter table autopost.messages alter column workspace_id set statistics 0;
alter table autopost.channels alter column workspace_id set statistics 0;
alter table autopost.channel_gates alter column workspace_id set statistics 0;
alter table autopost.channel_auth alter column workspace_id set statistics 0;
alter table autopost.platform_limits alter column workspace_id set statistics 0;
alter table autopost.events alter column workspace_id set statistics 0;
