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

// Check implements autopost.Checker. It returns the bot's name and, for each target, whether the bot may
// post there. It does not check the thread of a forum.
func (a *Adapter) Check(ctx context.Context, secret autopost.Secret, targets []string) (autopost.CredentialInfo, *autopost.Error) {
	c := a.checker(secret)
	var me struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
	}
	if failure := c.ask(ctx, "getMe", nil, &me); failure != nil {
		return autopost.CredentialInfo{}, failure
	}
	standing := autopost.CredentialInfo{Account: "@" + me.Username, Rights: make([]autopost.Right, 0, len(targets))}
	for _, target := range targets {
		right, failure := c.right(ctx, target, me.ID)
		if failure != nil {
			return standing, failure
		}
		standing.Rights = append(standing.Rights, right)
	}
	return standing, nil
}

// checker makes a checker whose errors contain neither the token nor the other secrets.
func (a *Adapter) checker(secret autopost.Secret, others ...autopost.Secret) checker {
	return checker{adapter: a, secret: secret, hide: adapter.Hide(append(others, secret)...)}
}

// checker makes calls about a bot, without a delivery.
type checker struct {
	adapter *Adapter
	secret  autopost.Secret
	hide    adapter.Redactor
}

// right checks one chat. An error concerns all chats; a problem of this chat is in the Right.
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
	case failure != nil && concernsChat(failure):
		right.Reason = failure.Message + ": add the bot to the chat, or correct the target"
	case failure != nil:
		return right, failure
	case info.Type == "private":
		right.MayPost = true
	default:
		right.Reason = member.missing(info.Type)
		right.MayPost = right.Reason == ""
	}
	return right, nil
}

// concernsChat reports whether an error is about the chat, not about the bot.
func concernsChat(failure *autopost.Error) bool {
	return failure.Category == autopost.Permanent && failure.Scope != autopost.ScopePlatform &&
		failure.Code != codeBadToken && failure.Code != "tg_unauthorized" && failure.Code != codeFrozen
}

// member is the bot's membership of a chat.
type member struct {
	Status          string `json:"status"`
	CanPostMessages bool   `json:"can_post_messages"`
	CanSendMessages bool   `json:"can_send_messages"`
}

// missing returns the right that the bot needs to post in a chat of the given type, and how to grant it;
// "" if it may post.
func (m member) missing(chatType string) string {
	switch {
	case m.Status == "left" || m.Status == "kicked":
		return "the bot is not in the chat: add it"
	case chatType == "channel" && m.Status == "creator":
		return ""
	case chatType == "channel" && m.Status != "administrator":
		return "the bot is not an administrator of the channel: make it one that may post messages"
	case chatType == "channel" && !m.CanPostMessages:
		return "the bot is an administrator without the right to post messages: grant that right"
	case m.Status == "restricted" && !m.CanSendMessages:
		return "the bot may not send messages in the chat: lift the restriction"
	}
	return ""
}

// ask calls a method that changes nothing, and decodes its result.
func (c checker) ask(ctx context.Context, method string, query url.Values, into any) *autopost.Error {
	target := c.address(method)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return badToken()
	}
	return c.exchange(req, into)
}

// post calls a method that changes something. Its parameters are in the body, for proxies log URLs.
func (c checker) post(ctx context.Context, method string, form url.Values) *autopost.Error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address(method).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return badToken()
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.exchange(req, new(any))
}

func (c checker) address(method string) *url.URL {
	return c.adapter.base.JoinPath("bot"+url.PathEscape(c.secret.Reveal()), method)
}

// badToken replaces an error that quotes the URL, and with it the token.
func badToken() *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeBadToken, "the token contains characters that a URL may not have")
}

// exchange makes a call and decodes its result.
func (c checker) exchange(req *http.Request, into any) *autopost.Error {
	answer, failure := adapter.Exchange(c.adapter.client, req, c.hide)
	if failure != nil {
		return failure
	}
	found, failure := result(answer, c.hide)
	if failure != nil {
		return failure
	}
	if json.Unmarshal(found, into) != nil {
		return unreadable(answer, c.hide)
	}
	return nil
}

var _ autopost.Checker = (*Adapter)(nil)
