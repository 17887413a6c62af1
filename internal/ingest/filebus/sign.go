package filebus

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"autopost"
)

// platformWebhook is the platform of signing keys.
const platformWebhook autopost.Platform = "webhook"

// verify reports whether an approval has a valid signature. Without a key none is valid.
func (c *scan) verify(ctx context.Context, a approval) (bool, error) {
	if a.Signature == "" || c.options.ApprovalRef == "" {
		return false, nil
	}
	secret, err := c.stage.cfg.Keys.Credential(ctx, c.source.WorkspaceID, c.options.ApprovalRef, platformWebhook)
	if errors.Is(err, autopost.ErrNoCredential) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the key of approvals ref=%s: %w", c.options.ApprovalRef, err)
	}
	return goodSignature(a, secret), nil
}

// goodSignature compares in constant time. A signed approval names what it approves and until when.
func goodSignature(a approval, secret autopost.Secret) bool {
	encoded, found := strings.CutPrefix(strings.TrimSpace(secret.Reveal()), "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	offered, wrong := base64.StdEncoding.DecodeString(a.Signature)
	if !found || err != nil || wrong != nil || len(key) == 0 || a.PayloadDigest == "" || a.ExpiresAt == "" {
		return false
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(a.signed())) // a hash takes everything
	return hmac.Equal(mac.Sum(nil), offered)
}
