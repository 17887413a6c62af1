package youtube

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeWrongChannel = "yt_wrong_channel"
	codeNoChannel    = "yt_no_channel"
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
		return definite(failure, codeInterrupted, autopost.ScopeDelivery)
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, out) != nil {
		return refused(answer, s.hide)
	}
	return nil
}

// account is the channel that a credential speaks for, and its list of uploads.
type account struct{ channel, uploads string }

// own finds out, once for each credential, whose it is, and answers that channel's list
// of uploads. A video in another's channel could not be called back; a target that is too
// short to be a channel's whole id cannot be compared.
func (s *sender) own(ctx context.Context) (uploads string, failure *autopost.Error) {
	id := sha256.Sum256([]byte(s.key.lasting()))
	known, ok := s.accounts.Load(id)
	if !ok {
		if known, failure = s.whose(ctx); failure != nil {
			return "", failure
		}
		s.accounts.Store(id, known)
	}
	a := known.(account)
	if target := s.call.Delivery.TargetID; len(target) == len(a.channel) && target != a.channel {
		return "", adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeWrongChannel,
			"the credential speaks for "+a.channel+", not for "+target)
	}
	return a.uploads, nil
}

func (s *sender) whose(ctx context.Context) (account, *autopost.Error) {
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
		return account{}, failure
	}
	if len(got.Items) == 0 {
		return account{}, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeNoChannel, "the account has no YouTube channel")
	}
	return account{got.Items[0].ID, got.Items[0].ContentDetails.RelatedPlaylists.Uploads}, nil
}
