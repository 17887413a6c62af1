-- +goose Up
-- What X needs: an outcome that is looked up, threads, and failures that cost a post no attempt.

alter table autopost.platforms
	add column settle_seconds int not null default 0 check (settle_seconds >= 0), -- how long after a call the platform may not show what it made: nothing is sent again before
	add column threads boolean not null default false; -- whether each message of a delivery answers the one before
update autopost.platforms set settle_seconds = 60, threads = true where platform = 'x';

alter table autopost.retry_policies
	add column costs_attempt boolean not null default true; -- false: what failed says nothing about the post, and the attempt is granted again
insert into autopost.retry_policies (platform, code, kind, base_ms, cap_ms, costs_attempt) values
	('x', 'x_no_credits', 'exponential', 3600000, 3600000, false),
	('x', 'x_usage_capped', 'exponential', 21600000, 21600000, false);
