package twitter

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // OAuth 1.0a is HMAC-SHA1: X takes no other
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// signer authenticates requests as an account.
type signer interface {
	sign(req *http.Request)
}

// bearer is an access token of OAuth 2.0.
type bearer string

func (b bearer) sign(req *http.Request) { req.Header.Set("Authorization", "Bearer "+string(b)) }

// keys are the four secrets of OAuth 1.0a.
type keys struct {
	consumer, consumerSecret, token, tokenSecret string
}

// sign signs the method, the address and the query. OAuth 1.0a does not sign JSON and multipart bodies.
func (k keys) sign(req *http.Request) {
	params := map[string]string{
		"oauth_consumer_key": k.consumer, "oauth_token": k.token, "oauth_signature_method": "HMAC-SHA1", "oauth_version": "1.0",
		"oauth_timestamp": strconv.FormatInt(time.Now().Unix(), 10), "oauth_nonce": rand.Text(),
	}
	params["oauth_signature"] = k.signature(req.Method, req.URL, params)
	fields := make([]string, 0, len(params))
	for name, value := range params {
		fields = append(fields, name+`="`+escape(value)+`"`)
	}
	slices.Sort(fields)
	req.Header.Set("Authorization", "OAuth "+strings.Join(fields, ", "))
}

func (k keys) signature(method string, address *url.URL, params map[string]string) string {
	var pairs []string
	for name, value := range params {
		pairs = append(pairs, escape(name)+"="+escape(value))
	}
	for name, values := range address.Query() {
		for _, value := range values {
			pairs = append(pairs, escape(name)+"="+escape(value))
		}
	}
	slices.Sort(pairs)
	bare := url.URL{Scheme: address.Scheme, Host: strings.ToLower(address.Host), Path: address.Path, RawPath: address.RawPath}
	mac := hmac.New(sha1.New, []byte(escape(k.consumerSecret)+"&"+escape(k.tokenSecret)))
	// Writing to a hash never fails.
	_, _ = mac.Write([]byte(method + "&" + escape(bare.String()) + "&" + escape(strings.Join(pairs, "&"))))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// escape encodes all characters except letters, digits and -._~, as OAuth 1.0a requires.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// readCredential reads the secret of an account: an object with the four keys of OAuth 1.0a, an object
// with an access_token of OAuth 2.0, or the token alone. It also returns the parts to redact.
func readCredential(secret autopost.Secret) (signer, []autopost.Secret, *autopost.Error) {
	text := strings.TrimSpace(secret.Reveal())
	parts := []autopost.Secret{secret}
	if text == "" {
		return nil, nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, "the credential is empty")
	}
	if !strings.HasPrefix(text, "{") {
		if !printable(text) {
			return nil, nil, unusable("the token has characters that a header must not have")
		}
		return bearer(text), parts, nil
	}
	var given struct {
		ConsumerKey       string `json:"consumer_key"`
		ConsumerSecret    string `json:"consumer_secret"`
		AccessToken       string `json:"access_token"`
		AccessTokenSecret string `json:"access_token_secret"`
		ClientSecret      string `json:"client_secret"`
		RefreshToken      string `json:"refresh_token"`
	}
	if json.Unmarshal([]byte(text), &given) != nil {
		return nil, nil, unusable("the credential must be a JSON object of strings")
	}
	for _, part := range []string{given.ConsumerKey, given.ConsumerSecret, given.AccessToken, given.AccessTokenSecret, given.ClientSecret, given.RefreshToken} {
		if part != "" {
			parts = append(parts, autopost.NewSecret(part))
		}
	}
	switch {
	case given.AccessToken == "" || !printable(given.AccessToken):
		return nil, nil, unusable("access_token is missing or not valid: link the account again")
	case given.ConsumerKey == "":
		return bearer(given.AccessToken), parts, nil
	case given.ConsumerSecret == "" || given.AccessTokenSecret == "":
		return nil, nil, unusable("consumer_key needs consumer_secret and access_token_secret")
	}
	return keys{given.ConsumerKey, given.ConsumerSecret, given.AccessToken, given.AccessTokenSecret}, parts, nil
}

func unusable(why string) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeUnauthorized, why)
}

func printable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
