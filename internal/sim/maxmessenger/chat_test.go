package maxmessenger_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
)

func TestTargets(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	const body = `{"text":"x"}`
	f.do("POST", "/messages", body).refused(t, 400, "proto.payload", "Missing required parameter: chat_id or user_id")
	f.do("POST", "/messages?chat_id=1&user_id=2", body).refused(t, 400, "proto.payload", "Must be exactly one of chat_id, user_id")
	f.do("POST", "/messages?chat_id=abc", body).refused(t, 400, "proto.payload", "Invalid chat_id: abc")
	f.do("POST", "/messages?chat_id=-5", body).refused(t, 404, "chat.not.found", "Chat -5 not found")
	f.do("POST", "/messages?user_id=5", body).refused(t, 404, "error.dialog.notfound", "Dialog with user 5 not found")
	for _, c := range []struct {
		chat          maxmessenger.Chat
		code, message string
	}{
		{maxmessenger.Chat{ID: -9, Access: maxmessenger.AccessNone}, "access.denied", "Access denied"},
		{maxmessenger.Chat{ID: -9, Access: maxmessenger.AccessMember}, "chat.denied", "chat.send.msg.no.permission.because.not.admin"},
		{maxmessenger.Chat{ID: -9, Access: maxmessenger.AccessReadOnly}, "chat.denied", "chat.send.msg.no.permission.because.not.admin"},
		{maxmessenger.Chat{ID: -9, Type: "dialog", Access: maxmessenger.AccessSuspended}, "chat.denied", "error.dialog.suspended"},
	} {
		f.AddChat(c.chat)
		f.do("POST", "/messages?chat_id=-9", body).refused(t, 403, c.code, c.message)
	}
	f.AddChat(maxmessenger.Chat{ID: -9, Type: "chat", Access: maxmessenger.AccessMember})
	require.Equal(t, 200, f.do("POST", "/messages?chat_id=-9", body).status)
}

func TestList(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	var mids []string
	for i := range 3 {
		mids = append(mids, f.send(fmt.Sprintf(`{"text":"%d"}`, i)).message(t).Body.Mid)
	}
	list := func(query string) (texts []string) {
		var answer struct {
			Messages []sentMessage `json:"messages"`
		}
		f.do("GET", "/messages?"+query, "").into(t, &answer)
		for _, m := range answer.Messages {
			texts = append(texts, m.Body.Text)
		}
		return texts
	}
	chat := fmt.Sprintf("chat_id=%d", channel)
	require.Equal(t, []string{"2", "1", "0"}, list(chat), "newest first")
	require.Equal(t, []string{"2", "1"}, list(chat+"&count=2"))
	require.Equal(t, []string{"0", "2"}, list("message_ids="+url.QueryEscape(mids[0]+",mid.none,"+mids[2])))
	first := strconv.FormatInt(f.Messages(channel)[0].Date.UnixMilli(), 10)
	require.Empty(t, list(chat+"&before="+first), "older than the first")
	require.NotContains(t, list(chat+"&after="+first), "0")
	require.Equal(t, []string{"2", "1", "0"}, list(chat+"&after=0"))
	f.do("GET", "/messages?"+chat+"&before=x", "").refused(t, 400, "proto.payload", "Invalid before: x")
	f.do("GET", "/messages?"+chat+"&count=101", "").refused(t, 400, "proto.payload", "Field 'count' must be from 1 to 100")

	var one sentMessage
	f.do("GET", "/messages/"+mids[1], "").into(t, &one)
	require.Equal(t, "1", one.Body.Text)
	f.do("GET", "/messages/mid.none", "").refused(t, 404, "not.found", "Message mid.none not found")
	f.SetAccess(channel, maxmessenger.AccessNone)
	f.do("GET", "/messages/"+mids[1], "").refused(t, 404, "not.found", "Message "+mids[1]+" not found")
	f.do("GET", "/messages?"+chat, "").refused(t, 403, "access.denied", "Access denied")
}

func TestChannelsRejectSilentPosts(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	f.send(`{"text":"x","notify":false}`).refused(t, 400, "proto.payload", "Field 'notify' must be true in a channel")
	f.send(`{"text":"x","notify":true}`).message(t)
	f.AddChat(maxmessenger.Chat{ID: -9, Type: "chat"})
	require.Equal(t, 200, f.do("POST", "/messages?chat_id=-9", `{"text":"x","notify":false}`).status)
	entries := f.core.Log.Entries()
	require.Equal(t, []string{"silent"}, entries[len(entries)-1].Badges)
}

func TestEditAndDelete(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	mid := f.send(attachments("image", f.uploaded(t, "image"))).message(t).Body.Mid
	target := "/messages?message_id=" + mid
	require.JSONEq(t, `{"success":true}`, string(f.do("PUT", target, `{"text":"new"}`).body))
	require.Len(t, f.Messages(channel)[0].Media, 1, "absent attachments are kept")
	require.Equal(t, 200, f.do("PUT", target, `{"attachments":[]}`).status)
	require.Empty(t, f.Messages(channel)[0].Media)
	require.Equal(t, "new", f.Messages(channel)[0].Text, "an absent text is kept")
	f.do("PUT", "/messages", `{"message_id":"`+mid+`","text":"x"}`).refused(t, 400, "proto.payload", "Missing required parameter: message_id")
	f.do("PUT", "/messages?message_id=mid.none", `{"text":"x"}`).refused(t, 404, "not.found", "Message mid.none not found")

	foreign := f.serve(other, "PUT", target, "application/json", strings.NewReader(`{"text":"x"}`))
	require.JSONEq(t, `{"success":false,"message":"Message is not the bot's own"}`, string(foreign.body))

	require.JSONEq(t, `{"success":true}`, string(f.do("DELETE", target, "").body))
	f.do("DELETE", target, "").refused(t, 404, "not.found", "Message "+mid+" not found")
	require.Empty(t, f.Messages(channel))
}

func TestPins(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	mid := f.send(`{"text":"one"}`).message(t).Body.Mid
	at := "/chats/" + strconv.FormatInt(channel, 10) + "/pin"
	require.JSONEq(t, `{"message":null}`, string(f.do("GET", at, "").body))
	require.JSONEq(t, `{"success":true}`, string(f.do("PUT", at, `{"message_id":"`+mid+`","notify":false}`).body))
	require.Contains(t, string(f.do("GET", at, "").body), mid)
	require.Equal(t, mid, f.Pinned(channel))
	f.do("PUT", at, `{"message_id":"mid.none"}`).refused(t, 404, "not.found", "Message mid.none not found")
	require.JSONEq(t, `{"success":true}`, string(f.do("DELETE", at, "").body))
	require.JSONEq(t, `{"success":true}`, string(f.do("DELETE", at, "").body), "again")
	require.Empty(t, f.Pinned(channel))
}

func TestHealthChecks(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	var chat struct {
		ID     int64  `json:"chat_id"`
		Type   string `json:"type"`
		Status string `json:"status"`
		Link   string `json:"link"`
	}
	f.do("GET", fmt.Sprintf("/chats/%d", channel), "").into(t, &chat)
	require.Equal(t, channel, chat.ID)
	require.Equal(t, "active", chat.Status)
	require.Equal(t, "https://max.ru/demo_shop", chat.Link)
	var member struct {
		IsAdmin     bool     `json:"is_admin"`
		Permissions []string `json:"permissions"`
	}
	path := fmt.Sprintf("/chats/%d/members/me", channel)
	f.do("GET", path, "").into(t, &member)
	require.True(t, member.IsAdmin)
	require.Contains(t, member.Permissions, "write")
	f.SetAccess(channel, maxmessenger.AccessReadOnly)
	f.do("GET", path, "").into(t, &member)
	require.NotContains(t, member.Permissions, "write")
	f.SetAccess(channel, maxmessenger.AccessNone)
	f.do("GET", path, "").refused(t, 403, "access.denied", "Access denied")
	f.do("GET", "/chats/-1", "").refused(t, 404, "chat.not.found", "Chat -1 not found")
}

func TestScriptedFaults(t *testing.T) {
	f := newFixture(t, maxmessenger.Limits{})
	for status, code := range map[int]string{
		400: "proto.payload", 401: "verify.token", 403: "chat.denied", 404: "chat.not.found", 429: "too.many.requests",
		500: "internal.error", 503: "service.unavailable",
	} {
		require.NoError(t, f.core.Faults.Add(sim.Fault{
			Platform: maxmessenger.Platform, Chat: fmt.Sprint(channel), Method: "POST /messages",
			Effect: sim.EffectStatus, Status: status, RetryAfter: 3,
		}))
		r := f.send(`{"text":"x"}`)
		var body struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		}
		require.NoError(t, json.Unmarshal(r.body, &body))
		require.Equal(t, status, r.status)
		require.Equal(t, code, body.Code)
		require.NotEmpty(t, body.Message)
		require.Equal(t, "3", r.header.Get("Retry-After"))
		f.core.Faults.Clear()
	}
	require.Empty(t, f.Messages(channel))
	require.NoError(t, f.core.Faults.Add(sim.Fault{Effect: sim.EffectStatus, Status: 403, Code: "account.blocked", Description: "blocked"}))
	f.do("GET", "/me", "").refused(t, 403, "account.blocked", "blocked")
}

func TestAnyBotAnyChatAndReset(t *testing.T) {
	core := sim.NewCore(0)
	f := fixture{core: core, Server: maxmessenger.New(core, maxmessenger.Options{AnyBot: true, AnyChat: true, Prefix: "/max"})}
	require.Equal(t, 200, f.send(`{"text":"x"}`).status)
	require.Len(t, f.Messages(channel), 1)
	require.Equal(t, "http://example.com/max/upload/image/", f.slot(t, "image").URL[:36])
	f.Reset()
	require.Empty(t, f.Messages(channel))
}
