-- +goose Up
-- What a full disk keeps from being stored says nothing about the post.
insert into autopost.retry_policies (platform, code, kind, base_ms, cap_ms, costs_attempt) values
	('*', 'media_no_room', 'exponential', 30000, 30000, false); -- each try may fetch the medium anew
