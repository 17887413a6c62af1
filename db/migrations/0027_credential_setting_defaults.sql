-- +goose Up
-- The settings of credentials say, as all others do, what they are until somebody changes them.
update autopost.settings s
set default_value = d.value
from (values
	('auth_refresh_ahead_seconds', '600'::jsonb), ('auth_refresh_lease_seconds', '60'), ('auth_warn_days', '7'), ('auth_keep_replaced_hours', '24')) d (key, value)
where s.key = d.key;
