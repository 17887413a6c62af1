-- +goose Up
-- How long things are kept, the indexes by which they are found when their time is over, and the chain of the audit log.

insert into autopost.settings (key, value, meaning) values
	('event_retention_days', '30', 'how long events are kept; never longer than deliveries'),
	('delivery_retention_days', '90', 'how long finished deliveries and decided submissions are kept; never shorter than any channel''s dedup window'),
	('message_retention_days', '90', 'how long a message without deliveries is kept after it was last seen; never shorter than any channel''s dedup window'),
	('run_retention_days', '30', 'how long ingest runs are kept, and at least as long as events'),
	('audit_retention_days', '365', 'how long the audit log is kept'),
	('origin_retention_days', '30', 'how long media that no message refers to stay in the origin after they were last seen'),
	('origin_retention_large_video_days', '7', 'the same for large video'),
	('large_video_bytes_threshold', '52428800', 'a video of this size is a large one');

-- Submissions whose story is over, oldest first.
create index submissions_final on autopost.submissions (workspace_id, updated_at)
	where status in ('skipped', 'enqueued', 'rejected', 'expired', 'failed');
-- Those that still wait, and whose media nobody may take away.
create index submissions_open on autopost.submissions (workspace_id, submission_id) where status in ('new', 'fetching', 'pending');
-- Media that were not seen for long.
create index media_origin_seen on autopost.media_origin (workspace_id, last_seen_at) where deleted_at is null;

-- Which message refers to which medium of the origin. A trigger on messages writes it.
create table autopost.message_media (
	workspace_id text not null,
	message_id   uuid not null,
	blob_ref     text not null,
	primary key (workspace_id, message_id, blob_ref),
	foreign key (workspace_id, message_id) references autopost.messages (workspace_id, message_id) on delete cascade
);
create index message_media_ref on autopost.message_media (workspace_id, blob_ref);
alter table autopost.message_media enable row level security, force row level security;
create policy workspace on autopost.message_media using (workspace_id = current_setting('autopost.workspace_id', true));
create policy owner_session on autopost.message_media to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');
insert into autopost.message_media (workspace_id, message_id, blob_ref)
select distinct m.workspace_id, m.message_id, b.value ->> 'blob_ref'
from autopost.messages m
cross join lateral jsonb_array_elements(m.payload -> 'media') b
where m.payload ? 'media' and b.value ? 'blob_ref';

-- Each row of the audit log seals the one before it.
alter table autopost.admin_audit_log
	add column seq       bigint,
	add column prev_hash text,
	add column hash      text;

-- The two ends of each workspace's chain: what a row would follow now, and what the oldest row that is kept follows.
create table autopost.audit_heads (
	workspace_id text not null primary key references autopost.workspaces (workspace_id),
	seq          bigint not null default 0,
	hash         text not null default repeat('0', 64),
	base_seq     bigint not null default 0,
	base_hash    text not null default repeat('0', 64)
);
alter table autopost.audit_heads enable row level security, force row level security;
create policy workspace on autopost.audit_heads using (workspace_id = current_setting('autopost.workspace_id', true));
create policy owner_session on autopost.audit_heads to autopost_owner using (coalesce(current_setting('autopost.workspace_id', true), '') = '');

-- Rows from before the chain are sealed as they stand, in the order of their ids.
alter table autopost.admin_audit_log disable trigger user;
-- +goose StatementBegin
do $$
declare
	v_row autopost.admin_audit_log;
	v_head autopost.audit_heads;
begin
	insert into autopost.audit_heads (workspace_id) select w.workspace_id from autopost.workspaces w;
	for v_row in select l.* from autopost.admin_audit_log l order by l.workspace_id, l.id loop
		select h.* into v_head from autopost.audit_heads h where h.workspace_id = v_row.workspace_id;
		v_row.seq := v_head.seq + 1;
		v_row.prev_hash := v_head.hash;
		v_row.hash := encode(sha256(convert_to(jsonb_build_array(v_row.prev_hash, v_row.workspace_id, v_row.seq, v_row.id,
			(extract(epoch from v_row.ts) * 1000000)::bigint, v_row.operator, v_row.action, v_row.reason, v_row.subject, v_row.before, v_row.after)::text, 'UTF8')), 'hex');
		update autopost.admin_audit_log l
		set seq = v_row.seq, prev_hash = v_row.prev_hash, hash = v_row.hash
		where l.workspace_id = v_row.workspace_id and l.id = v_row.id;
		update autopost.audit_heads h set seq = v_row.seq, hash = v_row.hash where h.workspace_id = v_row.workspace_id;
	end loop;
end
$$;
-- +goose StatementEnd
alter table autopost.admin_audit_log enable trigger user;
alter table autopost.admin_audit_log
	alter column seq set not null,
	alter column prev_hash set not null,
	alter column hash set not null,
	add unique (workspace_id, seq);
