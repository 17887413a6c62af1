package twitter

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example is from X's documentation; its keys are not valid.
func TestBaseStringEqualsTheDocumentedExample(t *testing.T) {
	c := &call{
		r: &http.Request{
			Method: http.MethodPost, Host: "API.twitter.com:443", RequestURI: "/1.1/statuses/update.json?include_entities=true", TLS: &tls.ConnectionState{},
			Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		},
		query: url.Values{"include_entities": {"true"}},
		body:  []byte("status=Hello%20Ladies%20%2b%20Gentlemen%2c%20a%20signed%20OAuth%20request%21"),
	}
	base := baseString(c, map[string]string{
		"oauth_consumer_key": "xvz1evFS4wEEPTGEFPHBog", "oauth_nonce": "kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg", "oauth_signature_method": "HMAC-SHA1",
		"oauth_timestamp": "1318622958", "oauth_token": "370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb", "oauth_version": "1.0",
	})
	mac := hmac.New(sha1.New, []byte("kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw&LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE"))
	_, err := mac.Write([]byte(base))
	require.NoError(t, err)
	require.Equal(t, "hCtSmYh+iHYCEqBWrE7C7hYmtUk=", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
