// Package signed makes requests that are signed as Standard Webhooks
// (https://www.standardwebhooks.com) asks, for whoever sends posts or results to
// addresses of others.
package signed

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"autopost"
)

// ErrKey says that a secret is no key. It shows nothing of it.
var ErrKey = errors.New("the signing secret is not whsec_ and 24 to 64 bytes in base64")

// Key signs.
type Key struct{ webhook *standardwebhooks.Webhook }

// ReadKey makes a key of "whsec_" and 24 to 64 bytes in base64; the error is ErrKey.
func ReadKey(secret autopost.Secret) (Key, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	if err != nil || len(raw) < 24 || len(raw) > 64 {
		return Key{}, ErrKey
	}
	webhook, err := standardwebhooks.NewWebhookRaw(raw)
	if err != nil {
		return Key{}, ErrKey
	}
	return Key{webhook}, nil
}

// Request is a POST of a JSON body, signed by each of the keys, of which there is
// at least one, at the moment of the call, for receivers refuse old signatures. The id
// is webhook-id and holds no dot.
func Request(ctx context.Context, url, id string, body []byte, keys ...Key) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var signatures []string
	for _, key := range keys {
		signature, err := key.webhook.Sign(id, now, body)
		if err != nil {
			return nil, err
		}
		signatures = append(signatures, signature)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return req, nil
}
