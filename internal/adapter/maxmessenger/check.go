package maxmessenger

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"autopost"
	"autopost/internal/adapter"
)

// Check implements autopost.Checker. It returns the bot's name and, for each target, whether the bot may
// write there.
func (a *Adapter) Check(ctx context.Context, secret autopost.Secret, targets []string) (autopost.CredentialInfo, *autopost.Error) {
	c := a.checker(secret)
	var me struct {
		UserID   int64  `json:"user_id"`
		Username string `json:"username"`
	}
	if failure := c.ask(ctx, &me, nil, "me"); failure != nil {
		return autopost.CredentialInfo{}, failure
	}
	standing := autopost.CredentialInfo{Account: me.Username, Rights: make([]autopost.Right, 0, len(targets))}
	if standing.Account == "" {
		standing.Account = fmt.Sprint(me.UserID)
	}
	for _, target := range targets {
		right, failure := c.right(ctx, target)
		if failure != nil {
			return standing, failure
		}
		standing.Rights = append(standing.Rights, right)
	}
	return standing, nil
}

// checker makes a checker whose errors contain neither the token nor the other secrets.
func (a *Adapter) checker(secret autopost.Secret, others ...autopost.Secret) checker {
	return checker{sender{adapter: a, call: autopost.Call{Secret: secret}, hide: adapter.Hide(append(others, secret)...)}}
}

// checker makes calls about a bot, without a delivery.
type checker struct{ sender }

// right checks one chat. An error concerns all chats; a problem of this chat is in the Right.
func (c checker) right(ctx context.Context, target string) (autopost.Right, *autopost.Error) {
	right := autopost.Right{Target: target}
	c.call.Delivery.TargetID = target
	if failure := c.prepare(); failure != nil {
		if failure.Code == codeUnauthorized {
			return right, failure
		}
		right.Reason = failure.Message + ": correct the target"
		return right, nil
	}
	var chat struct {
		Type   string `json:"type"`
		Status string `json:"status"`
		Title  string `json:"title"`
	}
	var member struct {
		IsOwner     bool     `json:"is_owner"`
		IsAdmin     bool     `json:"is_admin"`
		Permissions []string `json:"permissions"`
	}
	failure := c.ask(ctx, &chat, nil, "chats", c.chat)
	right.Title = chat.Title
	if failure == nil && chat.Type != "dialog" {
		failure = c.ask(ctx, &member, nil, "chats", c.chat, "members", "me")
	}
	switch {
	case failure != nil && failure.Category == autopost.Permanent && failure.Scope == autopost.ScopeChannel && failure.Code != codeUnauthorized:
		right.Reason = failure.Message + ": add the bot to the chat, or correct the target"
	case failure != nil:
		return right, failure
	case chat.Status != "active":
		right.Reason = "the bot is no longer in the chat (" + chat.Status + "): add it"
	case chat.Type == "channel" && !member.IsOwner && !slices.Contains(member.Permissions, "write"):
		right.Reason = "the bot may not write in the channel: make it an administrator with the right to write"
	case member.IsAdmin && !member.IsOwner && !slices.Contains(member.Permissions, "write"):
		right.Reason = "the bot is an administrator without the right to write: grant that right"
	default:
		right.MayPost = true
	}
	return right, nil
}

// ask makes a call that changes nothing, and decodes its answer.
func (s *sender) ask(ctx context.Context, into any, query url.Values, path ...string) *autopost.Error {
	target := s.adapter.base.JoinPath(path...)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "max_chat_invalid", "the target cannot be part of a URL")
	}
	req.Header.Set("Authorization", s.call.Secret.Reveal())
	return s.decode(req, into)
}

// decode makes a call and decodes its answer.
func (s *sender) decode(req *http.Request, into any) *autopost.Error {
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	if failure != nil {
		return failure
	}
	if r, ok := parse(answer); answer.Status >= 300 || ok && r.refusal() {
		return refused(answer, s.hide)
	}
	if json.Unmarshal(answer.Body, into) != nil {
		return adapter.Unknown(fmt.Sprintf("status %d without an answer of MAX's form", answer.Status))
	}
	return nil
}

var _ autopost.Checker = (*Adapter)(nil)
