-- +goose Up
-- What verify answers: one row an invariant, violations 0 where it holds, and at most five of the offending rows.
create type autopost.verify_finding as (
	invariant  text,
	title      text,
	violations bigint,
	sample     jsonb
);
