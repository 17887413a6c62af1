-- +goose Up
-- What is claimed at a time is a part, the deliveries of a workspace on one platform: see lib/armed_workspaces.

drop function if exists autopost.armed_workspaces(jsonb);
