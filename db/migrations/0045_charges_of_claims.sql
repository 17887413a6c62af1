-- +goose Up
-- What a claim looked at and found no slot for was charged all the same, and never claimed again: the charge of its next attempt stood already.
delete from autopost.charges h
using autopost.deliveries d
where d.workspace_id = h.workspace_id and d.delivery_id = h.delivery_id and h.use = 'post' and h.attempt > d.attempt;
update autopost.deliveries d
set quota_held = false
where d.quota_held and d.status in ('queued', 'retry');
