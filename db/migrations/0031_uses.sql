-- +goose Up
-- Uses of a platform that have a price of their own are charged beside posts.

-- What a use costs, in millionths of a dollar, by the name that the adapter reports; one that is not here costs nothing.
create table autopost.use_prices (
	platform text not null references autopost.platforms (platform),
	use      text not null,
	micros   bigint not null check (micros >= 0),
	primary key (platform, use)
);
insert into autopost.use_prices (platform, use, micros) values
	('x', 'media_metadata', 5000), -- an alternative text
	('x', 'owned_read', 5000); -- a post of the account that was read; 1000 where the account owns the app

alter table autopost.charges
	add column use text not null default 'post', -- post: what the claim reckoned; else one of use_prices
	drop constraint charges_pkey,
	add primary key (workspace_id, delivery_id, attempt, use);
comment on column autopost.charges.delivery_id is 'of a use without a delivery, an id of its own';
