package youtube_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/youtube"
)

const channelID = "UCdemo-channel"

type fixture struct {
	*youtube.Server
	t       *testing.T
	core    *sim.Core
	refresh string
	access  string
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	core := sim.NewCore(0)
	f := &fixture{Server: youtube.New(core, youtube.Options{}), t: t, core: core}
	require.NoError(t, f.AddProject(youtube.Project{ID: "p", ClientID: "client", ClientSecret: "hush"}))
	require.NoError(t, f.AddChannel(youtube.Channel{ID: channelID, Title: "Demo", Playlists: []string{"PLown"}}))
	f.refresh = f.grant("p", channelID)
	f.access = f.renewed(f.refresh)
	return f
}

func (f *fixture) grant(project, channel string) string {
	f.t.Helper()
	refresh, err := f.Grant(project, channel, youtube.ScopeAll+" "+youtube.ScopeUpload)
	require.NoError(f.t, err)
	return refresh
}

func (f *fixture) renew(form url.Values) reply {
	request := httptest.NewRequest(http.MethodPost, "/google/token", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	f.Tokens().ServeHTTP(w, request)
	return reply{w.Code, w.Header(), w.Body.Bytes()}
}

func form(refresh string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {"client"}, "client_secret": {"hush"}, "refresh_token": {refresh}}
}

func (f *fixture) renewed(refresh string) string {
	f.t.Helper()
	var got struct {
		Access string `json:"access_token"`
		Type   string `json:"token_type"`
	}
	f.into(f.renew(form(refresh)), &got)
	require.Equal(f.t, "Bearer", got.Type)
	return got.Access
}

// serve answers without a network, for tests with a simulated clock. The headers are pairs.
func (f *fixture) serve(method, target, body string, headers ...string) reply {
	request := httptest.NewRequest(method, target, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+f.access)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, request)
	return reply{w.Code, w.Header(), w.Body.Bytes()}
}

func (f *fixture) json(method, target, body string) reply {
	return f.serve(method, target, body, "Content-Type", "application/json; charset=UTF-8")
}

func (f *fixture) into(r reply, v any) {
	f.t.Helper()
	require.Equal(f.t, 200, r.status, "%s", r.body)
	require.NoError(f.t, json.Unmarshal(r.body, v), "%s", r.body)
}

func (f *fixture) refused(r reply, status int, reason string) {
	f.t.Helper()
	var got struct {
		Error struct {
			Code   int `json:"code"`
			Errors []struct {
				Reason, Domain, Message string
			} `json:"errors"`
		} `json:"error"`
	}
	require.NoError(f.t, json.Unmarshal(r.body, &got), "%s", r.body)
	require.Equal(f.t, status, r.status, "%s", r.body)
	require.Equal(f.t, status, got.Error.Code)
	require.Equal(f.t, reason, got.Error.Errors[0].Reason, "%s", r.body)
	require.NotEmpty(f.t, got.Error.Errors[0].Domain)
	require.NotEmpty(f.t, got.Error.Errors[0].Message)
	entries := f.core.Log.Entries()
	require.Contains(f.t, entries[len(entries)-1].Reason, reason, "the log has the reason")
}

const start = "/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status"

// metadata returns the JSON of a title and a status.
func metadata(title, status string) string {
	return fmt.Sprintf(`{"snippet":{"title":%q,"description":"About %s","tags":["a","b c"],"categoryId":"22"},"status":%s}`, title, title, status)
}

func (f *fixture) begin(target, body string, size int) reply {
	return f.serve("POST", target, body, "Content-Type", "application/json", "X-Upload-Content-Type", "video/mp4", "X-Upload-Content-Length", fmt.Sprint(size))
}

func (f *fixture) session(title, status string, size int) string {
	f.t.Helper()
	r := f.begin(start, metadata(title, status), size)
	require.Equal(f.t, 200, r.status, "%s", r.body)
	require.Empty(f.t, r.body)
	return r.header.Get("Location")
}

func (f *fixture) put(session, content, contentRange string) reply {
	headers := []string{"Content-Type", "video/mp4"}
	if contentRange != "" {
		headers = append(headers, "Content-Range", contentRange)
	}
	return f.serve("PUT", session, content, headers...)
}

// clip is content with the first bytes of a video.
func clip(seed string, size int) string {
	head := "\x00\x00\x00\x18ftypisom" + seed
	return head + strings.Repeat("x", max(0, size-len(head)))
}

type shownVideo struct {
	ID      string
	Snippet struct {
		Title, Description, ChannelID string
		Tags                          []string
	}
	Status struct {
		UploadStatus, PrivacyStatus, PublishAt, FailureReason, RejectionReason string
		ContainsSyntheticMedia                                                 bool
	}
	ProcessingDetails struct{ ProcessingStatus string }
}

// upload creates a video in one request.
func (f *fixture) upload(title, status, content string) shownVideo {
	f.t.Helper()
	var v shownVideo
	f.into(f.put(f.session(title, status, len(content)), content, ""), &v)
	return v
}

func (f *fixture) videos(target string) []shownVideo {
	f.t.Helper()
	var list struct{ Items []shownVideo }
	f.into(f.json("GET", target, ""), &list)
	return list.Items
}

func (f *fixture) state(id string) shownVideo {
	f.t.Helper()
	items := f.videos("/youtube/v3/videos?part=snippet,status,processingDetails&id=" + id)
	require.Len(f.t, items, 1)
	return items[0]
}
