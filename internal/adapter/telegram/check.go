package telegram

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// Check implements autopost.Checker: who the bot is, and for each chat whether it
// may post there. A forum's thread is not looked at.
func (a *Adapter) Check(ctx context.Context, secret autopost.Secret, targets []string) (autopost.Standing, *autopost.Error) {
	c := a.checker(secret)
	var me struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
	}
	if failure := c.ask(ctx, "getMe", nil, &me); failure != nil {
		return autopost.Standing{}, failure
	}
	standing := autopost.Standing{Account: "@" + me.Username, Rights: make([]autopost.Right, 0, len(targets))}
	for _, target := range targets {
		right, failure := c.right(ctx, target, me.ID)
		if failure != nil {
			return standing, failure
		}
		standing.Rights = append(standing.Rights, right)
	}
	return standing, nil
}

// checker asks about a bot; nothing that is kept of its calls holds the token, or the other secrets.
func (a *Adapter) checker(secret autopost.Secret, others ...autopost.Secret) checker {
	return checker{adapter: a, secret: secret, hide: adapter.Hide(append(others, secret)...)}
}

type checker struct {
	adapter *Adapter
	secret  autopost.Secret
	hide    adapter.Redactor
}

// right asks about one chat. The error is one that the next chat would meet, too.
func (c checker) right(ctx context.Context, target string, bot int64) (autopost.Right, *autopost.Error) {
	right := autopost.Right{Target: target}
	chat, _, _ := strings.Cut(target, ":")
	var info struct {
		Type  string `json:"type"`
		Title string `json:"title"`
	}
	failure := c.ask(ctx, "getChat", url.Values{"chat_id": {chat}}, &info)
	right.Title = info.Title
	var member member
	if failure == nil && info.Type != "private" {
		failure = c.ask(ctx, "getChatMember", url.Values{"chat_id": {chat}, "user_id": {strconv.FormatInt(bot, 10)}}, &member)
	}
	switch {
	case failure != nil && ofTarget(failure):
		right.Reason = failure.Message + ": add the bot to the chat, or correct the target"
	case failure != nil:
		return right, failure
	case info.Type == "private":
		right.MayPost = true
	default:
		right.Reason = member.obstacle(info.Type)
		right.MayPost = right.Reason == ""
	}
	return right, nil
}

// ofTarget reports whether a failure is of the chat and says nothing of the token.
func ofTarget(failure *autopost.Error) bool {
	return failure.Category == autopost.Permanent && failure.Code != codeBadToken && failure.Code != "tg_unauthorized"
}

// member is how a bot belongs to a chat.
type member struct {
	Status          string `json:"status"`
	CanPostMessages bool   `json:"can_post_messages"`
	CanSendMessages bool   `json:"can_send_messages"`
}

// obstacle says what keeps a bot from posting in a chat of the given type; "" is nothing.
func (m member) obstacle(chatType string) string {
	switch {
	case m.Status == "left" || m.Status == "kicked":
		return "the bot is not in the chat: add it"
	case chatType == "channel" && m.Status == "creator":
		return ""
	case chatType == "channel" && m.Status != "administrator":
		return "the bot is no administrator of the channel: make it one that may post messages"
	case chatType == "channel" && !m.CanPostMessages:
		return "the bot is an administrator that may not post messages: give it that right"
	case m.Status == "restricted" && !m.CanSendMessages:
		return "the bot may not send messages in the chat: lift the restriction"
	}
	return ""
}

// ask calls a method that changes nothing.
func (c checker) ask(ctx context.Context, method string, query url.Values, into any) *autopost.Error {
	target := c.address(method)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return badAddress()
	}
	return c.exchange(req, into)
}

// tell calls a method that changes something. Its parameters go in the body: addresses are logged on the way.
func (c checker) tell(ctx context.Context, method string, form url.Values) *autopost.Error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address(method).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return badAddress()
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.exchange(req, new(any))
}

func (c checker) address(method string) *url.URL {
	return c.adapter.base.JoinPath("bot"+url.PathEscape(c.secret.Reveal()), method)
}

// badAddress stands for an error that quotes the URL.
func badAddress() *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeBadToken, "the token makes no address")
}

// exchange makes a call and reads its result.
func (c checker) exchange(req *http.Request, into any) *autopost.Error {
	answer, failure := adapter.Exchange(c.adapter.client, req, c.hide)
	if failure != nil {
		return failure
	}
	var r reply
	if json.Unmarshal(answer.Body, &r) != nil || r.OK == nil {
		return unreadable(answer, c.hide)
	}
	if !*r.OK {
		return refused(answer, r, c.hide)
	}
	if json.Unmarshal(r.Result, into) != nil {
		return unreadable(answer, c.hide)
	}
	return nil
}

var _ autopost.Checker = (*Adapter)(nil)
