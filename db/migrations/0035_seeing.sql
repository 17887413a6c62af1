-- +goose Up
-- Since when a claimed delivery is due, and when it was scheduled for: how late it goes is told by whoever sends it.
alter type autopost.claimed_delivery add attribute due_at timestamptz;
alter type autopost.claimed_delivery add attribute scheduled_for timestamptz;
