package youtube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
)

const (
	codeWrongChannel = "yt_wrong_channel"
	codeNoChannel    = "yt_no_channel"
)

// account is the channel of a credential and the playlist of its uploads.
type account struct{ channel, title, uploads string }

// isNot reports that a target is another channel. A target that is shorter than a channel id is not compared.
func (a account) isNot(target string) bool {
	return len(target) == len(a.channel) && target != a.channel
}

// Check implements autopost.Checker. A credential belongs to one channel and uploads only to that one.
func (a *Adapter) Check(ctx context.Context, secret autopost.Secret, targets []string) (autopost.CredentialInfo, *autopost.Error) {
	s, failure := a.authorised(autopost.Call{Secret: secret})
	if failure != nil {
		return autopost.CredentialInfo{}, failure
	}
	is, failure := s.requestAccount(ctx)
	if failure != nil {
		return autopost.CredentialInfo{}, failure
	}
	standing := autopost.CredentialInfo{Account: cmp.Or(is.title, is.channel), Rights: make([]autopost.Right, 0, len(targets))}
	for _, target := range targets {
		right := autopost.Right{Target: target}
		switch {
		case !channelID.MatchString(target):
			right.Reason = "the target must be a channel id, which begins with UC: correct it"
		case is.isNot(target):
			right.Reason = "the credential belongs to " + is.channel + ": correct the target, or link the other channel"
		default:
			right.MayPost, right.Title = true, is.title
		}
		standing.Rights = append(standing.Rights, right)
	}
	return standing, nil
}

// own returns the playlist of uploads of the credential's channel, which must be the target. The check
// precedes the upload, and its result is cached for each credential.
func (s *sender) own(ctx context.Context) (uploads string, failure *autopost.Error) {
	id := sha256.Sum256([]byte(s.key.lasting()))
	known, ok := s.accounts.Load(id)
	if !ok {
		if known, failure = s.requestAccount(ctx); failure != nil {
			return "", failure
		}
		s.accounts.Store(id, known)
	}
	is := known.(account)
	if target := s.call.Delivery.TargetID; is.isNot(target) {
		return "", adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeWrongChannel,
			"the credential belongs to "+is.channel+", the target is "+target)
	}
	return is.uploads, nil
}

// requestAccount asks for the channel of the credential.
func (s *sender) requestAccount(ctx context.Context) (account, *autopost.Error) {
	var got struct {
		Items []struct {
			ID      string `json:"id"`
			Snippet struct {
				Title string `json:"title"`
			} `json:"snippet"`
			ContentDetails struct {
				RelatedPlaylists struct {
					Uploads string `json:"uploads"`
				} `json:"relatedPlaylists"`
			} `json:"contentDetails"`
		} `json:"items"`
	}
	failure := s.list(ctx, "channels", url.Values{"part": {"id,snippet,contentDetails"}, "mine": {"true"}}, &got)
	if failure != nil {
		return account{}, failure
	}
	if len(got.Items) == 0 {
		return account{}, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeNoChannel, "the account has no YouTube channel")
	}
	item := got.Items[0]
	return account{item.ID, item.Snippet.Title, item.ContentDetails.RelatedPlaylists.Uploads}, nil
}

var _ autopost.Checker = (*Adapter)(nil)
