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

// account is the channel that a credential speaks for, and its list of uploads.
type account struct{ channel, title, uploads string }

// isNot says that a target is another channel. One that is too short to be a channel's
// whole id cannot be compared.
func (a account) isNot(target string) bool {
	return len(target) == len(a.channel) && target != a.channel
}

// Check implements autopost.Checker: a credential speaks for one channel, and may
// upload to that alone.
func (a *Adapter) Check(ctx context.Context, secret autopost.Secret, targets []string) (autopost.Standing, *autopost.Error) {
	s, failure := a.speaker(autopost.Call{Secret: secret})
	if failure != nil {
		return autopost.Standing{}, failure
	}
	is, failure := s.whose(ctx)
	if failure != nil {
		return autopost.Standing{}, failure
	}
	standing := autopost.Standing{Account: cmp.Or(is.title, is.channel), Rights: make([]autopost.Right, 0, len(targets))}
	for _, target := range targets {
		right := autopost.Right{Target: target}
		switch {
		case !channelForm.MatchString(target):
			right.Reason = "the target is no channel id: correct it, it begins with UC"
		case is.isNot(target):
			right.Reason = "the credential speaks for " + is.channel + ": correct the target, or link that channel"
		default:
			right.MayPost, right.Title = true, is.title
		}
		standing.Rights = append(standing.Rights, right)
	}
	return standing, nil
}

// own finds out, once for each credential, whose it is, and answers that channel's list
// of uploads. A video in another's channel could not be called back.
func (s *sender) own(ctx context.Context) (uploads string, failure *autopost.Error) {
	id := sha256.Sum256([]byte(s.key.lasting()))
	known, ok := s.accounts.Load(id)
	if !ok {
		if known, failure = s.whose(ctx); failure != nil {
			return "", failure
		}
		s.accounts.Store(id, known)
	}
	is := known.(account)
	if target := s.call.Delivery.TargetID; is.isNot(target) {
		return "", adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeWrongChannel,
			"the credential speaks for "+is.channel+", not for "+target)
	}
	return is.uploads, nil
}

func (s *sender) whose(ctx context.Context) (account, *autopost.Error) {
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
