package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"autopost"
)

// errContent marks a failure to read the media store.
var errContent = errors.New("media content")

// Item returns one medium of the delivery's payload.
func Item(delivery autopost.Delivery, index int) (autopost.Media, *autopost.Error) {
	if index < 0 || index >= len(delivery.Payload.Media) {
		return autopost.Media{}, Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed,
			fmt.Sprintf("step names medium %d of %d", index, len(delivery.Payload.Media)))
	}
	return delivery.Payload.Media[index], nil
}

// CacheKind is the kind under which the platform's id of the medium is stored. The id of a file or sound
// has the name of its upload.
func CacheKind(medium autopost.Media, kind string) string {
	if named := medium.Type == autopost.MediaFile || medium.Type == autopost.MediaAudio; !named || medium.Meta.Filename == "" {
		return kind
	}
	return kind + "/" + medium.Meta.Filename
}

// Cached returns the platform's id of the medium for a kind; "" if there is none.
func Cached(ctx context.Context, media autopost.MediaAccess, medium autopost.Media, kind string) (string, *autopost.Error) {
	if medium.BlobRef == "" {
		return "", nil
	}
	id, ok, err := media.Cached(ctx, medium.BlobRef, CacheKind(medium, kind))
	if err != nil {
		return "", Refusal(autopost.Transient, autopost.ScopeDelivery, CodeOriginUnavailable,
			fmt.Sprintf("look up the platform's id of %s", medium.BlobRef))
	}
	if !ok {
		return "", nil
	}
	return id, nil
}

// Keep stores the platform's id of an uploaded medium. An error is ignored: a later post uploads again.
func Keep(ctx context.Context, media autopost.MediaAccess, medium autopost.Media, kind, id string) {
	_ = media.Keep(ctx, medium.BlobRef, CacheKind(medium, kind), id, time.Time{})
}

// Forget removes what the platform rejected. An error is ignored: the next upload replaces it.
func Forget(ctx context.Context, media autopost.MediaAccess, medium autopost.Media, kind string) {
	_ = media.Forget(ctx, medium.BlobRef, CacheKind(medium, kind))
}

// SourceURL returns the address from which the platform may fetch the medium; "" if it must be uploaded.
func SourceURL(ctx context.Context, media autopost.MediaAccess, medium autopost.Media, kind string) (string, *autopost.Error) {
	if medium.BlobRef == "" {
		return "", nil
	}
	url, ok, err := media.SourceURL(ctx, medium.BlobRef, kind)
	if err != nil {
		return "", Refusal(autopost.Transient, autopost.ScopeDelivery, CodeOriginUnavailable,
			fmt.Sprintf("look up the source of %s", medium.BlobRef))
	}
	if !ok {
		return "", nil
	}
	return url, nil
}

// Open opens the medium's content under its name in the post. The caller closes it.
func Open(ctx context.Context, media autopost.MediaAccess, medium autopost.Media, hide Redactor) (*autopost.Content, *autopost.Error) {
	if medium.BlobRef == "" {
		return nil, Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaMissingOrigin,
			"the medium has no content in the media origin")
	}
	content, err := media.Open(ctx, medium.BlobRef)
	if err != nil {
		return nil, contentError(fmt.Errorf("open %s: %w", medium.BlobRef, err), hide)
	}
	content.Filename = cmp.Or(medium.Meta.Filename, content.Filename)
	return content, nil
}

func contentError(err error, hide Redactor) *autopost.Error {
	if errors.Is(err, autopost.ErrNoOrigin) {
		return Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaMissingOrigin, hide.Text(err.Error()))
	}
	return Refusal(autopost.Transient, autopost.ScopeDelivery, CodeOriginUnavailable, hide.Text(err.Error()))
}
