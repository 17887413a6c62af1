package youtube

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
)

// do makes a call as the account. A token that is refused is renewed by whoever gave it.
func (s *sender) do(req *http.Request) (adapter.Answer, *autopost.Error) {
	req.Header.Set("Authorization", "Bearer "+s.key.AccessToken)
	s.hide = adapter.Hide(append(s.key.secrets(s.call.Secret), s.addresses()...)...)
	return adapter.Exchange(s.cfg.Client, req, s.hide)
}

// addresses are the secrets that the sessions' addresses are, whole and by their id.
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

// at is an address of the API.
func (s *sender) at(query url.Values, path ...string) string {
	target := s.base.JoinPath(path...)
	target.RawQuery = query.Encode()
	return target.String()
}

func newRequest(ctx context.Context, method, target string) (*http.Request, *autopost.Error) {
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the base URL makes no address")
	}
	return req, nil
}

// list reads a list of the API into out.
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
