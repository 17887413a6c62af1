-- +goose Up
-- The last slot that a gate gave is taken back from a start that came too late for it.
drop function if exists autopost.retake_slots(text, uuid[], timestamptz, bigint);
