package objectstore

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/sim"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	clockSkew  = 15 * time.Minute
	dateForm   = "20060102T150405Z"
	unsigned   = "UNSIGNED-PAYLOAD"
	chunked    = "STREAMING-"
	chunkedMAC = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
)

// authorization is a parsed Authorization header.
type authorization struct {
	key       string
	scope     []string // date, region, service, terminator
	headers   []string
	signature string
}

func readAuthorization(header string) (a authorization, ok bool) {
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return a, false
	}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			pieces := strings.Split(value, "/")
			a.key, a.scope = pieces[0], pieces[1:]
		case "SignedHeaders":
			a.headers = strings.Split(value, ";")
		case "Signature":
			a.signature = value
		}
	}
	return a, a.key != "" && len(a.scope) == 4 && a.scope[2] == "s3" && a.scope[3] == "aws4_request" && a.signature != ""
}

func accessKey(r *http.Request) string {
	a, _ := readAuthorization(r.Header.Get("Authorization"))
	return a.key
}

// verify checks the signature of a request and of its content.
func (s *Server) verify(c *call) *refusal {
	a, ok := readAuthorization(c.r.Header.Get("Authorization"))
	if !ok {
		return &refusal{http.StatusForbidden, "AccessDenied", "Access Denied"}
	}
	secret, known := s.keys[a.key]
	if !known && !s.opts.AnyKey {
		return &refusal{http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."}
	}
	if !known {
		secret = a.key + "-secret"
	}
	at, err := time.Parse(dateForm, c.r.Header.Get("X-Amz-Date"))
	switch {
	case err != nil || at.Format("20060102") != a.scope[0]:
		return &refusal{http.StatusForbidden, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header"}
	case time.Since(at).Abs() > clockSkew:
		return &refusal{http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."}
	case !slices.Contains(a.headers, "host"):
		return &refusal{http.StatusForbidden, "AccessDenied", "There were headers present in the request which were not signed"}
	}
	signingKey := []byte("AWS4" + secret)
	for _, part := range a.scope {
		signingKey = mac(signingKey, part)
	}
	toSign := strings.Join([]string{algorithm, c.r.Header.Get("X-Amz-Date"), strings.Join(a.scope, "/"), sim.Digest([]byte(canonical(c.r, a.headers)))}, "\n")
	if !hmac.Equal([]byte(hex.EncodeToString(mac(signingKey, toSign))), []byte(a.signature)) {
		return &refusal{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method."}
	}
	return c.verifyContent(a, signingKey)
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write([]byte(text)) // a hash never fails
	return m.Sum(nil)
}

// canonical returns the canonical request, which is signed.
func canonical(r *http.Request, headers []string) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	var pairs []string
	for name, values := range r.URL.Query() {
		for _, value := range values {
			pairs = append(pairs, escape(name)+"="+escape(value))
		}
	}
	slices.Sort(pairs)
	var b strings.Builder
	b.WriteString(r.Method + "\n" + path + "\n" + strings.Join(pairs, "&") + "\n")
	for _, name := range headers {
		values := slices.Clone(r.Header.Values(name))
		switch name {
		case "host":
			values = []string{r.Host}
		case "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		}
		for i := range values {
			values[i] = strings.Join(strings.Fields(values[i]), " ")
		}
		b.WriteString(name + ":" + strings.Join(values, ",") + "\n")
	}
	b.WriteString("\n" + strings.Join(headers, ";") + "\n" + r.Header.Get("X-Amz-Content-Sha256"))
	return b.String()
}

func escape(text string) string {
	return strings.NewReplacer("+", "%20", "%7E", "~").Replace(url.QueryEscape(text))
}

// verifyContent checks the content against its header, and decodes chunks.
func (c *call) verifyContent(a authorization, signingKey []byte) *refusal {
	declared := c.r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case declared == unsigned:
		return nil
	case strings.HasPrefix(declared, chunked):
		return c.unwrap(a, signingKey, strings.HasPrefix(declared, chunkedMAC))
	case declared != sim.Digest(c.body):
		return &refusal{http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."}
	}
	return nil
}

// unwrap decodes a body in chunks. Each chunk's signature depends on the previous one.
func (c *call) unwrap(a authorization, signingKey []byte, signed bool) *refusal {
	malformed := &refusal{http.StatusBadRequest, "IncompleteBody", "The request body is not well-formed aws-chunked content."}
	var whole bytes.Buffer
	rest, previous := c.body, a.signature
	for {
		line, after, ok := bytes.Cut(rest, []byte("\r\n"))
		length, extension, _ := strings.Cut(string(line), ";")
		n, err := strconv.ParseInt(length, 16, 32)
		if !ok || err != nil || n < 0 || n > int64(len(after)) {
			return malformed
		}
		chunk := after[:n]
		if signed {
			toSign := strings.Join([]string{
				algorithm + "-PAYLOAD", c.r.Header.Get("X-Amz-Date"), strings.Join(a.scope, "/"), previous, sim.Digest(nil), sim.Digest(chunk),
			}, "\n")
			previous = hex.EncodeToString(mac(signingKey, toSign))
			if !hmac.Equal([]byte(strings.TrimPrefix(extension, "chunk-signature=")), []byte(previous)) {
				return &refusal{http.StatusForbidden, "SignatureDoesNotMatch", "The signature of a chunk does not match."}
			}
		}
		if n == 0 {
			break // the rest are trailers
		}
		whole.Write(chunk)
		if rest, ok = bytes.CutPrefix(after[n:], []byte("\r\n")); !ok {
			return malformed
		}
	}
	if given := c.r.Header.Get("X-Amz-Decoded-Content-Length"); given != strconv.Itoa(whole.Len()) {
		return malformed
	}
	c.body = whole.Bytes()
	return nil
}
