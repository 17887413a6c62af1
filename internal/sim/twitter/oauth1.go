package twitter

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // OAuth 1.0a is HMAC-SHA1; X supports no other
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clockSkew is the tolerance of a signature's timestamp.
const clockSkew = 5 * time.Minute

// oauth1Params reads an OAuth 1.0a header; nil for another one.
func oauth1Params(header string) map[string]string {
	rest, ok := strings.CutPrefix(header, "OAuth ")
	if !ok {
		return nil
	}
	params := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		value, err := url.PathUnescape(strings.Trim(value, `"`))
		if _, twice := params[name]; !ok || err != nil || twice {
			return map[string]string{}
		}
		params[name] = value
	}
	return params
}

// verifyOAuth1 checks a signed call and returns its token.
func (s *Server) verifyOAuth1(c *call, params map[string]string) (*token, *problem) {
	key, name := params["oauth_consumer_key"], params["oauth_token"]
	if params["oauth_signature_method"] != "HMAC-SHA1" || params["oauth_nonce"] == "" || key == "" || name == "" {
		c.note("OAuth 1.0a: a parameter is missing or the method is not HMAC-SHA1")
		return nil, named("unauthorized")
	}
	if version, given := params["oauth_version"]; given && version != "1.0" {
		c.note("OAuth 1.0a: the version is not 1.0")
		return nil, named("unauthorized")
	}
	t := s.oauth1Token(key, name)
	if t == nil || t.app.ConsumerKey != key {
		c.note("OAuth 1.0a: no such token of this consumer")
		return nil, named("unauthorized")
	}
	at, err := strconv.ParseInt(params["oauth_timestamp"], 10, 64)
	if err != nil {
		return nil, named("unauthorized")
	}
	if time.Since(time.Unix(at, 0)).Abs() > clockSkew {
		return nil, named("code-135")
	}
	signature, err := base64.StdEncoding.DecodeString(params["oauth_signature"])
	mac := hmac.New(sha1.New, []byte(percent(t.app.ConsumerSecret)+"&"+percent(t.secret)))
	_, _ = mac.Write([]byte(baseString(c, params))) // a hash never fails
	if err != nil || !hmac.Equal(signature, mac.Sum(nil)) {
		c.note("OAuth 1.0a: the signature does not match")
		return nil, named("unauthorized")
	}
	return t, s.useNonce(c, name+" "+params["oauth_timestamp"]+" "+params["oauth_nonce"])
}

// useNonce refuses a repeated nonce.
func (s *Server) useNonce(c *call, nonce string) *problem {
	now := time.Now()
	for known, at := range s.nonces {
		if now.Sub(at) > 2*clockSkew {
			delete(s.nonces, known)
		}
	}
	if _, used := s.nonces[nonce]; used {
		c.note("OAuth 1.0a: the nonce was used before")
		return named("unauthorized")
	}
	s.nonces[nonce] = now
	return nil
}

// baseString is the signed text: method, address, and all parameters in order.
func baseString(c *call, params map[string]string) string {
	var pairs []string
	add := func(name, value string) { pairs = append(pairs, percent(name)+"="+percent(value)) }
	for name, value := range params {
		if name != "oauth_signature" && name != "realm" {
			add(name, value)
		}
	}
	for name, values := range c.query {
		for _, value := range values {
			add(name, value)
		}
	}
	if strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		// A form that cannot be read is not part of the signature.
		form, _ := url.ParseQuery(string(c.body))
		for name, values := range form {
			for _, value := range values {
				add(name, value)
			}
		}
	}
	slices.Sort(pairs)
	return c.r.Method + "&" + percent(address(c.r)) + "&" + percent(strings.Join(pairs, "&"))
}

// address is the requested URL without query and default port.
func address(r *http.Request) string {
	scheme, port := "http", ":80"
	if r.TLS != nil {
		scheme, port = "https", ":443"
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if requested, err := url.ParseRequestURI(r.RequestURI); err == nil {
		path = requested.EscapedPath()
	}
	return scheme + "://" + strings.TrimSuffix(strings.ToLower(r.Host), port) + path
}

// percent encodes all characters except letters, digits and -._~ (RFC 3986).
func percent(text string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		ch := text[i]
		if isASCIIWord(rune(ch)) && ch < 0x80 || strings.IndexByte("-._~", ch) >= 0 {
			b.WriteByte(ch)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[ch>>4])
		b.WriteByte(hexDigits[ch&15])
	}
	return b.String()
}
