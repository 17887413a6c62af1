package twitter_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/twitter"
)

type fixture struct {
	*twitter.Server
	t       *testing.T
	core    *sim.Core
	token   string // of user 42
	other   string // of user 43
	refresh string
	nonces  int
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	core := sim.NewCore(0)
	f := &fixture{Server: twitter.New(core, twitter.Options{Limits: &map[string]twitter.Limit{}}), t: t, core: core}
	require.NoError(t, f.AddApp(twitter.App{
		Name: "app", ConsumerKey: "ckey", ConsumerSecret: "c/sec ret", ClientID: "client", ClientSecret: "hush", OwnerID: "42",
	}))
	require.NoError(t, f.AddUser(twitter.User{ID: "42", Username: "nyx", Name: "Nyx", Premium: true}))
	require.NoError(t, f.AddUser(twitter.User{ID: "43", Username: "helion"}))
	require.NoError(t, f.GrantOAuth1("app", "42", "42-token", "t+secret"))
	var err error
	f.token, f.refresh, err = f.GrantOAuth2("app", "42", twitter.AllScopes)
	require.NoError(t, err)
	f.other, _, err = f.GrantOAuth2("app", "43", twitter.AllScopes)
	require.NoError(t, err)
	return f
}

// serve answers without a network, for tests with a simulated clock.
func (f *fixture) serve(authorization, method, target, contentType, body string) reply {
	request := httptest.NewRequest(method, target, strings.NewReader(body))
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, request)
	return reply{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

func (f *fixture) as(token, method, target, body string) reply {
	return f.serve("Bearer "+token, method, target, "application/json", body)
}

func (f *fixture) do(method, target, body string) reply { return f.as(f.token, method, target, body) }

func (f *fixture) post(body string) reply { return f.do("POST", "/2/tweets", body) }

func (f *fixture) postID(body string) string {
	f.t.Helper()
	r := f.post(body)
	require.Equal(f.t, 201, r.status, "%s", r.body)
	return f.data(r)["id"].(string)
}

func (f *fixture) data(r reply) map[string]any {
	f.t.Helper()
	var answer struct {
		Data map[string]any `json:"data"`
	}
	require.NoError(f.t, json.Unmarshal(r.body, &answer), "%s", r.body)
	return answer.Data
}

func (f *fixture) list(target string) (ids []string, meta map[string]any) {
	f.t.Helper()
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		Meta map[string]any `json:"meta"`
	}
	r := f.do("GET", target, "")
	require.Equal(f.t, 200, r.status, "%s", r.body)
	require.NoError(f.t, json.Unmarshal(r.body, &answer))
	for _, p := range answer.Data {
		ids = append(ids, p.ID)
	}
	return ids, answer.Meta
}

func (f *fixture) refused(r reply, status int, part string) {
	f.t.Helper()
	require.Equal(f.t, status, r.status, "%s", r.body)
	require.Contains(f.t, string(r.body), part)
	entries := f.core.Log.Entries()
	require.NotEmpty(f.t, entries[len(entries)-1].Reason, "the log has the reason")
}

func picture(t *testing.T, shade int) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 8+shade, 8))))
	return b.String()
}

const video = "\x00\x00\x00\x18ftypisom and so on"

// form returns a multipart body. The last pair is the file.
func form(t *testing.T, pairs ...string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+2 < len(pairs); i += 2 {
		require.NoError(t, w.WriteField(pairs[i], pairs[i+1]))
	}
	part, err := w.CreateFormFile(pairs[len(pairs)-2], "file")
	require.NoError(t, err)
	_, err = io.WriteString(part, pairs[len(pairs)-1])
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return w.FormDataContentType(), b.String()
}

func (f *fixture) initialize(kind, mediaType string, size int) string {
	f.t.Helper()
	r := f.do("POST", "/2/media/upload/initialize", fmt.Sprintf(`{"media_type":%q,"total_bytes":%d,"media_category":%q}`, mediaType, size, kind))
	require.Equal(f.t, 200, r.status, "%s", r.body)
	return f.data(r)["id"].(string)
}

func (f *fixture) append(id string, segment int, content string) reply {
	f.t.Helper()
	contentType, body := form(f.t, "segment_index", strconv.Itoa(segment), "media", content)
	return f.serve("Bearer "+f.token, "POST", "/2/media/upload/"+id+"/append", contentType, body)
}

func (f *fixture) finalize(id string) reply {
	return f.do("POST", "/2/media/upload/"+id+"/finalize", "")
}

// upload creates a medium from one chunk.
func (f *fixture) upload(kind, mediaType, content string) string {
	f.t.Helper()
	id := f.initialize(kind, mediaType, len(content))
	require.Equal(f.t, 200, f.append(id, 0, content).status)
	r := f.finalize(id)
	require.Equal(f.t, 200, r.status, "%s", r.body)
	return id
}

// signature returns an OAuth 1.0a header for a request. change replaces parameters before the signature.
func (f *fixture) signature(method, target string, change map[string]string, tokenSecret string) string {
	f.nonces++
	asked, err := url.Parse(target)
	require.NoError(f.t, err)
	oauth := map[string]string{
		"oauth_consumer_key": "ckey", "oauth_token": "42-token", "oauth_signature_method": "HMAC-SHA1", "oauth_version": "1.0",
		"oauth_timestamp": strconv.FormatInt(time.Now().Unix(), 10), "oauth_nonce": "nonce" + strconv.Itoa(f.nonces),
	}
	for name, value := range change {
		oauth[name] = value
	}
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	var pairs []string
	for name, value := range oauth {
		pairs = append(pairs, escape(name)+"="+escape(value))
	}
	for name, values := range asked.Query() {
		pairs = append(pairs, escape(name)+"="+escape(values[0]))
	}
	sort.Strings(pairs)
	base := method + "&" + escape("http://"+asked.Host+asked.Path) + "&" + escape(strings.Join(pairs, "&"))
	mac := hmac.New(sha1.New, []byte(escape("c/sec ret")+"&"+escape(tokenSecret)))
	_, err = mac.Write([]byte(base))
	require.NoError(f.t, err)
	oauth["oauth_signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	var header []string
	for name, value := range oauth {
		header = append(header, name+`="`+escape(value)+`"`)
	}
	return "OAuth " + strings.Join(header, ", ")
}
