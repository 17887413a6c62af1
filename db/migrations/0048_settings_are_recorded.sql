-- +goose Up
-- A change of settings says who made it and why.
drop function if exists autopost.apply_settings(jsonb, boolean);
drop function if exists autopost.change_settings(jsonb);
