-- +goose Up
-- A start that is late for its slot, begun or not, takes the next one together with the others of its batch.
drop function if exists autopost.retake_slots(text, uuid[], timestamptz);
drop function if exists autopost.begin_or_hand_back(text, text, jsonb, boolean);
drop function if exists autopost.begin_calls(text, jsonb);
