package twitter

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example is from X's documentation of signatures.
func TestSignatureEqualsTheDocumentedExample(t *testing.T) {
	k := keys{
		consumer: "xvz1evFS4wEEPTGEFPHBog", consumerSecret: "kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw",
		token: "370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb", tokenSecret: "LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE",
	}
	address, err := url.Parse("https://api.twitter.com/1.1/statuses/update.json?include_entities=true&status=" +
		url.QueryEscape("Hello Ladies + Gentlemen, a signed OAuth request!"))
	require.NoError(t, err)
	require.Equal(t, "hCtSmYh+iHYCEqBWrE7C7hYmtUk=", k.signature(http.MethodPost, address, map[string]string{
		"oauth_consumer_key": k.consumer, "oauth_token": k.token, "oauth_signature_method": "HMAC-SHA1", "oauth_version": "1.0",
		"oauth_nonce": "kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg", "oauth_timestamp": "1318622958",
	}))
}

func TestSignaturesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.x.com/2/users/me", nil)
		require.NoError(t, err)
		keys{"a", "b", "c", "d"}.sign(req)
		header := req.Header.Get("Authorization")
		require.True(t, strings.HasPrefix(header, "OAuth oauth_consumer_key=\"a\", "))
		require.False(t, seen[header])
		seen[header] = true
	}
}
