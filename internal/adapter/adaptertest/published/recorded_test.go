package published

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/twitter"
	"autopost/internal/sim/youtube"
)

// example is a recorded exchange of a fact sheet. Without a sheet it is nil.
type example struct {
	t       *testing.T
	request string // head and body; "" if the sheet shows only the answer
	answer  any
}

var block = regexp.MustCompile("(?s)```(?:json|http)\n(.*?)```")

// recorded reads the blocks below a heading of a sheet: a request, if there is one, and an answer.
func recorded(t *testing.T, sheet, heading string) *example {
	t.Helper()
	content, ok := File(t, "platforms/"+sheet)
	if !ok {
		return nil
	}
	_, below, found := strings.Cut(string(content), "\n"+heading)
	require.True(t, found, "%s has no %s", sheet, heading)
	section, _, _ := strings.Cut(below, "\n##")
	e := &example{t: t}
	for _, found := range block.FindAllStringSubmatch(section, -1) {
		text := found[1]
		if regexp.MustCompile(`^(GET|POST|PUT) `).MatchString(text) {
			e.request = text
			continue
		}
		if strings.HasPrefix(text, "HTTP/") {
			_, text, _ = strings.Cut(text, "\n\n")
		}
		require.NoError(t, json.Unmarshal([]byte(text), &e.answer), "%s %s", sheet, heading)
		return e
	}
	require.Fail(t, "no answer", "%s %s", sheet, heading)
	return nil
}

// sent returns the recorded request with another token.
func (e *example) sent(token string) *http.Request {
	e.t.Helper()
	head, body, _ := strings.Cut(e.request, "\n\n")
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n")))
	require.NoError(e.t, err)
	request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	if request.Header.Get("Authorization") != "" {
		request.Header.Set("Authorization", token)
	}
	return request
}

// like fails unless the simulator's answer has each field of the recorded one, of the same type. absent are fields that the
// sheet describes as optional.
func (e *example) like(host http.Handler, request *http.Request, status int, absent ...string) {
	e.t.Helper()
	w := httptest.NewRecorder()
	host.ServeHTTP(w, request)
	require.Equal(e.t, status, w.Code, "%s", w.Body)
	var answer any
	require.NoError(e.t, json.Unmarshal(w.Body.Bytes(), &answer))
	for _, difference := range differences("", e.answer, answer) {
		known := false
		for _, name := range absent {
			known = known || strings.HasPrefix(difference, name)
		}
		if !known {
			e.t.Errorf("the recorded answer differs: %s\n%s", difference, w.Body)
		}
	}
}

func differences(at string, recorded, answer any) (all []string) {
	switch recorded := recorded.(type) {
	case nil:
		return nil // any type
	case map[string]any:
		object, ok := answer.(map[string]any)
		if !ok {
			return []string{at + " is not an object"}
		}
		for name, value := range recorded {
			given, has := object[name]
			if !has {
				all = append(all, at+"."+name+" is absent")
				continue
			}
			all = append(all, differences(at+"."+name, value, given)...)
		}
	case []any:
		list, ok := answer.([]any)
		if !ok || len(list) == 0 && len(recorded) > 0 {
			return []string{at + " has no items"}
		}
		for i := range min(len(list), len(recorded)) {
			all = append(all, differences(at, recorded[i], list[i])...)
		}
	default:
		if answer != nil && fmt.Sprintf("%T", recorded) != fmt.Sprintf("%T", answer) {
			return []string{fmt.Sprintf("%s is %T, recorded %T", at, answer, recorded)}
		}
	}
	return all
}

func TestTelegramAnswersAsRecorded(t *testing.T) {
	t.Parallel()
	s := telegram.New(sim.NewCore(0), telegram.Options{})
	require.NoError(t, s.AddBot("1234567:AAExampleToken"))
	s.AddChat(telegram.Chat{ID: -1001234567890, Title: "Demo shop", Username: "demo_shop"})
	if e := recorded(t, "telegram.md", "### 2.1 "); e != nil {
		e.like(s, e.sent(""), http.StatusOK)
	}
	if e := recorded(t, "telegram.md", "### 2.2 "); e != nil {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		require.NoError(t, form.WriteField("chat_id", "-1001234567890"))
		require.NoError(t, form.WriteField("caption", "New arrival"))
		part, err := form.CreateFormFile("photo", "a.jpg")
		require.NoError(t, err)
		require.NoError(t, jpeg.Encode(part, image.NewGray(image.Rect(0, 0, 1280, 853)), nil))
		require.NoError(t, form.Close())
		request := httptest.NewRequest(http.MethodPost, "/bot1234567:AAExampleToken/sendPhoto", &body)
		request.Header.Set("Content-Type", form.FormDataContentType())
		e.like(s, request, http.StatusOK)
	}
}

func TestMAXAnswersAsRecorded(t *testing.T) {
	t.Parallel()
	e := recorded(t, "max.md", "### 3.1 ")
	if e == nil {
		return
	}
	const token = "f9LHod-a-token"
	s := maxmessenger.New(sim.NewCore(0), maxmessenger.Options{})
	require.NoError(t, s.AddBot(token))
	s.AddChat(maxmessenger.Chat{ID: -70801090403050, Title: "Demo", Username: "demo_shop"})
	// The request of the sheet shows two fields of a later version as absent and notify, which channels refuse.
	e.request = strings.Replace(e.request, `,"notify":true`, `,"attachments":null,"link":null`, 1)
	e.like(s, e.sent(token), http.StatusOK, ".message.sender")
}

func TestXAnswersAsRecorded(t *testing.T) {
	t.Parallel()
	e := recorded(t, "x.md", "### 2.1 ")
	if e == nil {
		return
	}
	s := twitter.New(sim.NewCore(0), twitter.Options{})
	require.NoError(t, s.AddApp(twitter.App{Name: "app", OwnerID: "42", ConsumerKey: "key"}))
	require.NoError(t, s.AddUser(twitter.User{ID: "42", Username: "demo"}))
	access, _, err := s.GrantOAuth2("app", "42", twitter.AllScopes)
	require.NoError(t, err)
	e.request = regexp.MustCompile(`"media":\{[^}]*\},`).ReplaceAllString(e.request, "")
	e.like(s, e.sent("Bearer "+access), http.StatusCreated)
}

func TestYouTubeAnswersAsRecorded(t *testing.T) {
	t.Parallel()
	start := recordedRequest(t, "youtube.md", "### 3.1 ")
	e := recorded(t, "youtube.md", "### 3.4 ")
	if e == nil {
		return
	}
	s := youtube.New(sim.NewCore(0), youtube.Options{})
	require.NoError(t, s.AddProject(youtube.Project{ID: "p", ClientID: "client", ClientSecret: "hush"}))
	require.NoError(t, s.AddChannel(youtube.Channel{ID: "UCdemo-channel", Title: "Demo"}))
	refresh, err := s.Grant("p", "UCdemo-channel", youtube.ScopeAll+" "+youtube.ScopeUpload)
	require.NoError(t, err)
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {"client"}, "client_secret": {"hush"}, "refresh_token": {refresh}}
	request := httptest.NewRequest(http.MethodPost, "/google/token", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.Tokens().ServeHTTP(w, request)
	var token struct {
		AccessToken string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &token))
	access := "Bearer " + token.AccessToken

	request = (&example{t: t, request: start}).sent(access)
	w = httptest.NewRecorder()
	s.ServeHTTP(w, request)
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	at, err := url.Parse(w.Header().Get("Location"))
	require.NoError(t, err)
	request = httptest.NewRequest(http.MethodPut, at.RequestURI(), bytes.NewReader(make([]byte, 3_000_000)))
	request.Header.Set("Authorization", access)
	request.Header.Set("Content-Type", "video/mp4")
	e.like(s, request, http.StatusOK)
}

// recordedRequest returns the request below a heading of a sheet whose answer has no body.
func recordedRequest(t *testing.T, sheet, heading string) string {
	t.Helper()
	content, ok := File(t, "platforms/"+sheet)
	if !ok {
		return ""
	}
	_, below, _ := strings.Cut(string(content), "\n"+heading)
	found := block.FindStringSubmatch(below)
	require.NotNil(t, found)
	return found[1]
}
