package adapter

import (
	"context"
	"errors"
	"fmt"

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

// Cached returns the platform's id of the medium for a kind; "" if there is none.
func Cached(ctx context.Context, media autopost.MediaAccess, medium autopost.Media, kind string) (string, *autopost.Error) {
	if medium.BlobRef == "" {
		return "", nil
	}
	id, ok, err := media.Cached(ctx, medium.BlobRef, kind)
	if err != nil {
		return "", Refusal(autopost.Transient, autopost.ScopeDelivery, CodeOriginUnavailable,
			fmt.Sprintf("look up the platform's id of %s", medium.BlobRef))
	}
	if !ok {
		return "", nil
	}
	return id, nil
}

// Open opens the medium's content. The caller closes it.
func Open(ctx context.Context, media autopost.MediaAccess, medium autopost.Media, hide Redactor) (*autopost.Content, *autopost.Error) {
	if medium.BlobRef == "" {
		return nil, Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaMissingOrigin,
			"the medium has no content in the media origin")
	}
	content, err := media.Open(ctx, medium.BlobRef)
	if err != nil {
		return nil, contentError(fmt.Errorf("open %s: %w", medium.BlobRef, err), hide)
	}
	return content, nil
}

func contentError(err error, hide Redactor) *autopost.Error {
	if errors.Is(err, autopost.ErrNoOrigin) {
		return Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeMediaMissingOrigin, hide.Text(err.Error()))
	}
	return Refusal(autopost.Transient, autopost.ScopeDelivery, CodeOriginUnavailable, hide.Text(err.Error()))
}
