package twitter

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"autopost"
	"autopost/internal/adapter"
)

// newPost has the fields of POST /2/tweets that the adapter uses.
type newPost struct {
	// Text is always sent: X's backend rejects a post without the field.
	Text                  string     `json:"text"`
	Media                 *postMedia `json:"media,omitempty"`
	Reply                 *postReply `json:"reply,omitempty"`
	ReplySettings         string     `json:"reply_settings,omitempty"`
	CommunityID           string     `json:"community_id,omitempty"`
	MadeWithAI            bool       `json:"made_with_ai,omitempty"`
	PaidPartnership       bool       `json:"paid_partnership,omitempty"`
	ForSuperFollowersOnly bool       `json:"for_super_followers_only,omitempty"`
	ShareWithFollowers    bool       `json:"share_with_followers,omitempty"`
}

type postMedia struct {
	IDs []string `json:"media_ids"`
}

type postReply struct {
	To string `json:"in_reply_to_tweet_id"`
}

// step makes the post of one step.
func (s *sender) step(ctx context.Context, step autopost.Step, answers string) (adapter.Receipt, *autopost.Error) {
	items := make([]item, len(step.Items))
	for i, index := range step.Items {
		medium, failure := adapter.Item(s.call.Delivery, index)
		if failure != nil {
			return adapter.Receipt{}, failure
		}
		if items[i], failure = s.findMedium(ctx, medium); failure != nil {
			return adapter.Receipt{}, failure
		}
	}
	known := slices.ContainsFunc(items, func(it item) bool { return it.known })
	receipt, failure := s.post(ctx, step, items, answers)
	if failure != nil && known && failure.Code == autopost.CodeMediaExpired {
		// The answer does not name the refused id.
		for i := range items {
			s.forget(ctx, &items[i])
		}
		receipt, failure = s.post(ctx, step, items, answers)
	}
	if failure != nil && failure.Code == codeDuplicate && s.call.Delivery.UnknownOutcomes > 0 {
		return s.resolveDuplicate(ctx, step, answers, failure)
	}
	return receipt, failure
}

// resolveDuplicate searches for the post that X reports as a duplicate: usually an earlier call created
// it, and its answer was lost. If the timeline does not show it yet, the next attempt searches again.
func (s *sender) resolveDuplicate(ctx context.Context, step autopost.Step, answers string, duplicate *autopost.Error) (adapter.Receipt, *autopost.Error) {
	if found, failure := s.findPost(ctx, step, answers); failure == nil && found.id != "" {
		return adapter.Receipt{IDs: []string{found.id}, SentAt: found.at}, nil
	}
	duplicate.Category, duplicate.RetryAfterMS = autopost.Transient, settleTime.Milliseconds()
	return adapter.Receipt{}, duplicate
}

// post uploads the media without an id and makes the post.
func (s *sender) post(ctx context.Context, step autopost.Step, items []item, answers string) (adapter.Receipt, *autopost.Error) {
	body := newPost{
		Text: s.text(step), MadeWithAI: s.settings.MadeWithAI, PaidPartnership: s.settings.PaidPartnership,
		ForSuperFollowersOnly: s.settings.ForSuperFollowersOnly, ShareWithFollowers: s.settings.ShareWithFollowers,
	}
	if answers != "" {
		body.Reply = &postReply{answers}
	} else {
		// The first post of a thread decides who may reply, and its community.
		body.ReplySettings, body.CommunityID = s.settings.ReplySettings, s.settings.CommunityID
	}
	for i := range items {
		if items[i].id == "" {
			if failure := s.prepare(ctx, &items[i]); failure != nil {
				return adapter.Receipt{}, failure
			}
		}
		if body.Media == nil {
			body.Media = &postMedia{}
		}
		body.Media.IDs = append(body.Media.IDs, items[i].id)
	}
	req, failure := s.request(ctx, http.MethodPost, "2/tweets", nil, bytes.NewReader(encode(body)))
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	if failure != nil {
		return adapter.Receipt{}, failure
	}
	return created(answer, s.hide)
}

// Delete implements autopost.Deleter. It deletes the posts of a thread from the last to the first, so
// that no reply loses its parent, and ignores posts that do not exist. The adapter offers no edits: X
// gives an edited post a new id, and only some accounts may edit.
func (a *Adapter) Delete(ctx context.Context, call autopost.Call) *autopost.Error {
	s, failure := a.sender(call)
	if failure != nil {
		return failure
	}
	ids := call.Delivery.MessageIDs()
	if len(ids) == 0 {
		return adapter.NoID("")
	}
	for n := len(ids) - 1; n >= 0; n-- {
		if failure := s.remove(ctx, ids[n]); failure != nil {
			return failure
		}
	}
	return nil
}

func (s *sender) remove(ctx context.Context, id string) *autopost.Error {
	if !postID.MatchString(id) {
		return adapter.NoID(id)
	}
	req, failure := s.request(ctx, http.MethodDelete, "2/tweets/"+id, nil, nil)
	if failure != nil {
		return failure
	}
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	if failure != nil {
		return failure
	}
	var done struct {
		Data struct {
			Deleted bool `json:"deleted"`
		} `json:"data"`
	}
	switch {
	case answer.Status == http.StatusNotFound && isFromX(answer):
		return nil
	case answer.Status >= 300:
		return refused(answer, s.hide)
	case json.Unmarshal(answer.Body, &done) != nil || !done.Data.Deleted:
		return unreadable(answer, s.hide)
	}
	return nil
}

func encode(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		panic("twitter: encode a request: " + err.Error()) // impossible for these types
	}
	return out
}
