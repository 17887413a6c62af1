package youtube

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeWrongChannel = "yt_wrong_channel"
	codeNoChannel    = "yt_no_channel"
	codeSignup       = "yt_youtube_signup_required"
)

// build makes the request of one try.
type build func() (*http.Request, *autopost.Error)

// do makes a call as the account. A refused token is exchanged, once, and the call made
// again: who is not known has done nothing.
func (s *sender) do(ctx context.Context, make build) (adapter.Answer, *autopost.Error) {
	var spent string
	for again := true; ; again = false {
		token, failure := s.token(ctx, spent)
		if failure != nil {
			return adapter.Answer{}, failure
		}
		req, failure := make()
		if failure != nil {
			return adapter.Answer{}, failure
		}
		req.Header.Set("Authorization", "Bearer "+token)
		s.hide = adapter.Hide(append(s.key.secrets(s.call.Secret), append(s.addresses(), autopost.NewSecret(token))...)...)
		answer, failure := adapter.Exchange(s.cfg.Client, req, s.hide)
		expired := failure == nil && answer.Status == http.StatusUnauthorized && s.key.RefreshToken != "" && refused(answer, s.hide).Code != codeSignup
		if !expired || !again {
			return answer, failure
		}
		spent = token
	}
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
	target := s.at(query, "youtube/v3", what)
	answer, failure := s.do(ctx, func() (*http.Request, *autopost.Error) { return newRequest(ctx, http.MethodGet, target) })
	if failure != nil {
		return definite(failure, codeInterrupted, autopost.ScopeDelivery)
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, out) != nil {
		return refused(answer, s.hide)
	}
	return nil
}

// own finds out, once for each credential, whose it is, and answers that channel's list
// of uploads. A video in another's channel could not be called back; a target that is too
// short to be a channel's whole id cannot be compared.
func (s *sender) own(ctx context.Context) (uploads string, failure *autopost.Error) {
	a := s.account
	if failure := a.enter(ctx); failure != nil {
		return "", failure
	}
	channel, uploads := a.channel, a.uploads
	a.leave()
	if channel == "" {
		var got struct {
			Items []struct {
				ID             string `json:"id"`
				ContentDetails struct {
					RelatedPlaylists struct {
						Uploads string `json:"uploads"`
					} `json:"relatedPlaylists"`
				} `json:"contentDetails"`
			} `json:"items"`
		}
		failure := s.list(ctx, "channels", url.Values{"part": {"id,contentDetails"}, "mine": {"true"}}, &got)
		if failure != nil {
			return "", failure
		}
		if len(got.Items) == 0 {
			return "", adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeNoChannel, "the account has no YouTube channel")
		}
		channel, uploads = got.Items[0].ID, got.Items[0].ContentDetails.RelatedPlaylists.Uploads
		if failure := a.enter(ctx); failure != nil {
			return "", failure
		}
		a.channel, a.uploads = channel, uploads
		a.leave()
	}
	if target := s.call.Delivery.TargetID; len(target) == len(channel) && target != channel {
		return "", adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeWrongChannel,
			"the credential speaks for "+channel+", not for "+target)
	}
	return uploads, nil
}
