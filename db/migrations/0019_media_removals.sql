-- +goose Up
-- Content whose object is being taken away from the media origin. Nobody may register it before that is over, else a row could
-- outlive its object. Workspaces share content, so there is no workspace here.
create table autopost.media_removals (
	blob_ref text not null primary key check (blob_ref <> ''),
	token    text not null,
	begun_at timestamptz not null
);

insert into autopost.settings (key, value, meaning) values
	('max_media_bytes_image', '10485760', 'largest picture that is taken into the media origin'),
	('max_media_bytes_video', '52428800', 'largest medium of any other kind that is taken into the media origin'),
	('media_removal_seconds', '600', 'after this long another one may take over taking content away');
