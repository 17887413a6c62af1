package pages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/test/harness"
)

const (
	ann      = "ann@example.org"
	password = "correct horse battery"
	// secret is that of an endpoint whose posts wait for a decision.
	secret = "secret-of-the-moderated-endpoint"
)

func TestMain(m *testing.M) { harness.Main(m) }

// site is a daemon whose workspace news has something of everything. The workspace is paused, so that only the test
// changes something.
type site struct {
	*harness.Harness
	t   *testing.T
	url string
	log func() string
	// link is the path of the link for the first person.
	link string
	ids  map[string]string
}

var printedLink = regexp.MustCompile(`http://[^/\s]+(/invite/\S+)`)

func open(t *testing.T) *site {
	t.Helper()
	s := &site{Harness: harness.New(t), t: t, ids: map[string]string{}}
	s.fill()
	s.begin()
	return s
}

func (s *site) fill() {
	posttest.Workspace(s.DB, "news")
	s.Exec(`update autopost.workspaces set name = 'Северные новости' where workspace_id = 'news'`)
	for _, id := range []string{"city", "sport", "region-with-a-long-name-of-a-channel-that-does-not-end", "night"} {
		posttest.Channel(s.DB, "news", id, posttest.MaxParallel(10))
	}
	s.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', 'bot', 'telegram', 'env:TEST_TELEGRAM_TOKEN') on conflict do nothing`)
	for _, status := range []autopost.Status{autopost.StatusDead, autopost.StatusFailedPermanent, autopost.StatusRetry, autopost.StatusSent, autopost.StatusQueued} {
		id := posttest.Delivery(s.DB, "news", "city", status)
		s.ids[string(status)] = pgtest.Value[string](s.DB, `select message_id::text from autopost.deliveries where delivery_id = $1::uuid`, id)
	}
	s.Exec(`select autopost.pause_channel('news', 'sport', 3600, 'ann', 'quiet', false)`)
	s.Exec(`select autopost.put_channel('news', 'night', '{"enabled": false}', 'ann', 'old', false)`)
	s.ids["message"] = s.JSON(`select autopost.submit_post('news', null, 'api', '{"text": "Мост через Кузнечиху перекроют на три ночи\n\nОбъезд: улица Гагарина. <script>alert(1)</script>", "tags": ["город", "мост"], "source_ref": "cms-4711"}')`)["message_id"].(string)
	sum := sha256.Sum256([]byte(secret))
	s.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, moderated) values ('news', 'editors', 'webhook_push', $1, true)`, hex.EncodeToString(sum[:]))
	for i := range 3 {
		s.JSON(`select autopost.receive_push('news', 'editors', jsonb_build_array(jsonb_build_object('text', $1::text))) -> 0`, fmt.Sprintf("Waits for a decision, number %d\n\nThe whole text of it.", i))
	}
	s.ids["submission"] = pgtest.Value[string](s.DB, `select submission_id::text from autopost.submissions where status = 'pending' order by submission_id limit 1`)
	s.Exec(`select autopost.raise_alert('news', 'dead', 'deliveries', '{"message": "1 dead delivery: tg_forbidden in city (1)"}', '{}')`)
	s.furnish()
	s.Exec(`update autopost.workspaces set status = 'paused' where workspace_id = 'news'`)
}

// person is a browser without a screen: it keeps cookies, follows nothing and fills forms.
type person struct {
	s       *site
	role    string
	cookies map[string]string
	header  http.Header
}

type answer struct {
	status int
	header http.Header
	body   string
	// set are the cookies that the answer set.
	set []*http.Cookie
}

func (s *site) person() *person {
	return &person{s: s, cookies: map[string]string{}, header: http.Header{}}
}

func (p *person) do(method, path string, form url.Values) answer {
	p.s.t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(context.Background(), method, p.s.url+path, body)
	require.NoError(p.s.t, err)
	for name, values := range p.header {
		r.Header[name] = values
	}
	if host := p.header.Get("Host"); host != "" {
		r.Host = host
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	return p.send(r)
}

// send sends a request and keeps the cookies of the answer.
func (p *person) send(r *http.Request) answer {
	p.s.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	require.NoError(p.s.t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	require.NoError(p.s.t, err)
	for _, c := range got.Cookies() {
		if p.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(p.cookies, c.Name)
		}
	}
	return answer{got.StatusCode, got.Header, string(text), got.Cookies()}
}

func (p *person) get(path string) answer {
	p.s.t.Helper()
	return p.do(http.MethodGet, path, nil)
}

var hiddenToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// post sends a form with the token of the session.
func (p *person) post(path string, fields ...string) answer {
	p.s.t.Helper()
	form := url.Values{}
	if m := hiddenToken.FindStringSubmatch(p.get("/setup").body); m != nil {
		form.Set("csrf", m[1])
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return p.do(http.MethodPost, path, form)
}

// owner is the first person, signed in.
func (s *site) owner() *person {
	s.t.Helper()
	p := s.person()
	got := p.post(s.link, "email", ann, "name", "Ann", "workspace", "news", "password", password)
	require.Equal(s.t, http.StatusSeeOther, got.status, got.body)
	return p
}

// member is a person with a role, signed in.
func (s *site) member(role string) *person {
	s.t.Helper()
	email := role + "@example.org"
	result := s.RunWithInput(password+"\n", "user", "add", email, "--role", role, "--workspace", "news")
	require.Zero(s.t, result.Code, result.Stderr)
	p := s.person()
	p.role = role
	require.Equal(s.t, http.StatusSeeOther, p.post("/login", "email", email, "password", password).status)
	return p
}

// fieldsOf returns the fields of the form of the composer as a browser would send them.
func fieldsOf(page string) url.Values {
	form := url.Values{}
	inside := page[strings.Index(page, `id="compose"`):]
	for _, m := range formField.FindAllStringSubmatch(inside, -1) {
		attributes := m[1] + m[3]
		name := between(attributes, ` name="`)
		kind := between(attributes, ` type="`)
		switch {
		case name == "", strings.HasPrefix(m[0], "<button"), kind == "file", (kind == "checkbox" || kind == "radio") && !strings.Contains(attributes, " checked"):
		case strings.HasPrefix(m[0], "<select"):
			if chosen := formOption.FindStringSubmatch(m[4]); chosen != nil {
				form.Add(name, html.UnescapeString(chosen[1]))
			}
		case strings.HasPrefix(m[0], "<textarea"):
			form.Add(name, html.UnescapeString(m[4]))
		default:
			form.Add(name, html.UnescapeString(between(attributes, ` value="`)))
		}
	}
	return form
}

var (
	formField  = regexp.MustCompile(`(?s)<input([^>]*)>|<(textarea|select)([^>]*)>(.*?)</(?:textarea|select)>`)
	formOption = regexp.MustCompile(`<option value="([^"]*)" selected`)
)

func between(text, begin string) string {
	_, after, _ := strings.Cut(text, begin)
	value, _, _ := strings.Cut(after, `"`)
	return value
}
