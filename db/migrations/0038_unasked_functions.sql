-- +goose Up
-- Functions that nothing asks any more: ready_work answers both of the first two at once, get_credential and list_credentials the others.
drop function if exists autopost.ready_workspaces_after(text, int);
drop function if exists autopost.next_wake_ms();
drop function if exists autopost.get_credential_binding(text, text);
drop function if exists autopost.list_credential_bindings(text, int);
