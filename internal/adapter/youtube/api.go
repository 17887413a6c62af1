package youtube

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
)

// do makes a request as the account. The caller renews a refused token.
func (s *sender) do(req *http.Request) (adapter.Answer, *autopost.Error) {
	req.Header.Set("Authorization", "Bearer "+s.key.AccessToken)
	s.hide = adapter.Hide(append(s.key.secrets(s.call.Secret), s.addresses()...)...)
	return adapter.Exchange(s.cfg.Client, req, s.hide)
}

// addresses are the addresses of the sessions and their ids, as secrets.
func (s *sender) addresses() []autopost.Secret {
	var out []autopost.Secret
	for _, u := range s.sessions {
		out = append(out, autopost.NewSecret(u.uri))
		if to, err := url.Parse(u.uri); err == nil {
			out = append(out, autopost.NewSecret(to.Query().Get("upload_id")))
		}
	}
	return out
}

// at returns an address of the API.
func (s *sender) at(query url.Values, path ...string) string {
	target := s.base.JoinPath(path...)
	target.RawQuery = query.Encode()
	return target.String()
}

func newRequest(ctx context.Context, method, target string) (*http.Request, *autopost.Error) {
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the base URL is not valid")
	}
	return req, nil
}

// list reads a list of resources into out.
func (s *sender) list(ctx context.Context, what string, query url.Values, out any) *autopost.Error {
	req, failure := newRequest(ctx, http.MethodGet, s.at(query, "youtube/v3", what))
	if failure != nil {
		return failure
	}
	answer, failure := s.do(req)
	if failure != nil {
		return definite(failure)
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, out) != nil {
		return refused(answer, s.hide)
	}
	return nil
}

// snippet is the part of a video with its texts. An update deletes every field that is missing.
type snippet struct {
	Title                string   `json:"title"`
	Description          string   `json:"description"`
	Tags                 []string `json:"tags,omitempty"`
	CategoryID           string   `json:"categoryId"`
	DefaultLanguage      string   `json:"defaultLanguage,omitempty"`
	DefaultAudioLanguage string   `json:"defaultAudioLanguage,omitempty"`
}

// Edit implements autopost.Editor. It changes title and description for 51 units of the daily quota.
// An update replaces the whole snippet, so Edit reads the snippet first and keeps its other fields.
func (a *Adapter) Edit(ctx context.Context, call autopost.Call) *autopost.Error {
	s, id, failure := a.about(call)
	if failure != nil {
		return failure
	}
	var found struct {
		Items []struct {
			Snippet snippet `json:"snippet"`
		} `json:"items"`
	}
	if failure := s.list(ctx, "videos", url.Values{"part": {"snippet"}, "id": {id}}, &found); failure != nil {
		return failure
	}
	if len(found.Items) == 0 {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, codeVideoNotFound, "the channel no longer has the video")
	}
	changed := found.Items[0].Snippet
	want := s.metadata().Snippet
	changed.Title, changed.Description = want.Title, want.Description
	body, err := json.Marshal(map[string]any{"id": id, "snippet": changed})
	if err != nil {
		panic("youtube: encode a snippet: " + err.Error()) // impossible for this type
	}
	return s.change(ctx, http.MethodPut, url.Values{"part": {"snippet"}}, body)
}

// Delete implements autopost.Deleter, for 50 units. A missing video counts as deleted.
func (a *Adapter) Delete(ctx context.Context, call autopost.Call) *autopost.Error {
	s, id, failure := a.about(call)
	if failure != nil {
		return failure
	}
	failure = s.change(ctx, http.MethodDelete, url.Values{"id": {id}}, nil)
	if failure != nil && failure.Code == codeVideoNotFound {
		return nil
	}
	return failure
}

// about returns a sender and the id of the delivery's video.
func (a *Adapter) about(call autopost.Call) (*sender, string, *autopost.Error) {
	s, failure := a.sender(call)
	if failure != nil {
		return nil, "", failure
	}
	ids := call.Delivery.MessageIDs()
	if len(ids) != 1 || ids[0] == "" {
		return nil, "", adapter.NoID("")
	}
	return s, ids[0], nil
}

// change updates or deletes a video.
func (s *sender) change(ctx context.Context, method string, query url.Values, body []byte) *autopost.Error {
	target := s.at(query, "youtube/v3/videos")
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the base URL is not valid")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	}
	answer, failure := s.do(req)
	if failure != nil {
		return definite(failure)
	}
	var made struct {
		Kind string `json:"kind"`
	}
	switch {
	case answer.Status == http.StatusNoContent && method == http.MethodDelete:
		return nil
	case answer.Status == http.StatusOK && method == http.MethodPut && json.Unmarshal(answer.Body, &made) == nil && made.Kind == "youtube#video":
		return nil
	}
	return refused(answer, s.hide)
}
