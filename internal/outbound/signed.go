package outbound

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

// ErrSigningKey means that the secret is not a valid key. The text does not contain the secret.
var ErrSigningKey = errors.New("the signing secret must be whsec_ and 24 to 64 bytes in base64")

// SigningKey signs requests as Standard Webhooks.
type SigningKey struct{ webhook *standardwebhooks.Webhook }

// ReadSigningKey parses "whsec_" and 24 to 64 bytes in base64. The error is ErrSigningKey.
func ReadSigningKey(secret autopost.Secret) (SigningKey, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	if err != nil || len(raw) < 24 || len(raw) > 64 {
		return SigningKey{}, ErrSigningKey
	}
	webhook, err := standardwebhooks.NewWebhookRaw(raw)
	if err != nil {
		return SigningKey{}, ErrSigningKey
	}
	return SigningKey{webhook}, nil
}

// SignedRequest returns a POST of a JSON body, signed with each of the keys (at least one) at the
// current time; receivers reject old signatures. id becomes the webhook-id and must not contain a dot.
func SignedRequest(ctx context.Context, url, id string, body []byte, keys ...SigningKey) (*http.Request, error) {
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
