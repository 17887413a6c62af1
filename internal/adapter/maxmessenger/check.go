package maxmessenger

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"autopost"
	"autopost/internal/adapter"
)

// Check implements autopost.Checker: who the bot is, and for each chat whether it
// may write there.
func (a *Adapter) Check(ctx context.Context, secret autopost.Secret, targets []string) (autopost.Standing, *autopost.Error) {
	c := a.checker(secret)
	var me struct {
		UserID   int64  `json:"user_id"`
		Username string `json:"username"`
	}
	if failure := c.ask(ctx, &me, "me"); failure != nil {
		return autopost.Standing{}, failure
	}
	standing := autopost.Standing{Account: me.Username, Rights: make([]autopost.Right, 0, len(targets))}
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

// checker asks about a bot; nothing that is kept of its calls holds the token, or the other secrets.
func (a *Adapter) checker(secret autopost.Secret, others ...autopost.Secret) checker {
	return checker{sender{adapter: a, call: autopost.Call{Secret: secret}, hide: adapter.Hide(append(others, secret)...)}}
}

type checker struct{ sender }

// right asks about one chat. The error is one that the next chat would meet, too.
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
	failure := c.ask(ctx, &chat, "chats", c.chat)
	right.Title = chat.Title
	if failure == nil && chat.Type != "dialog" {
		failure = c.ask(ctx, &member, "chats", c.chat, "members", "me")
	}
	switch {
	case failure != nil && failure.Category == autopost.Permanent && failure.Scope == autopost.ScopeChannel && failure.Code != codeUnauthorized:
		right.Reason = failure.Message + ": add the bot to the chat, or correct the target"
	case failure != nil:
		return right, failure
	case chat.Status != "active":
		right.Reason = "the bot is not in the chat any more (" + chat.Status + "): add it"
	case chat.Type == "channel" && !member.IsOwner && !slices.Contains(member.Permissions, "write"):
		right.Reason = "the bot may not write in the channel: make it an administrator that may"
	case member.IsAdmin && !member.IsOwner && !slices.Contains(member.Permissions, "write"):
		right.Reason = "the bot is an administrator that may not write: give it that right"
	default:
		right.MayPost = true
	}
	return right, nil
}

// ask makes a call that changes nothing.
func (c checker) ask(ctx context.Context, into any, path ...string) *autopost.Error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.adapter.base.JoinPath(path...).String(), nil)
	if err != nil {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "max_chat_invalid", "the target makes no address")
	}
	req.Header.Set("Authorization", c.call.Secret.Reveal())
	return c.exchange(req, into)
}

// exchange makes a call and reads its answer.
func (c checker) exchange(req *http.Request, into any) *autopost.Error {
	answer, failure := adapter.Exchange(c.adapter.client, req, c.hide)
	if failure != nil {
		return failure
	}
	if r, ok := parse(answer); answer.Status >= 300 || ok && r.refusal() {
		return refused(answer, c.hide)
	}
	if json.Unmarshal(answer.Body, into) != nil {
		return adapter.Unknown(fmt.Sprintf("status %d without an answer of MAX's form", answer.Status))
	}
	return nil
}

var _ autopost.Checker = (*Adapter)(nil)
