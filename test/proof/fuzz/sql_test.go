package fuzz

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"autopost/internal/api"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

var act = pg.OperatorAction{Workspace: "w", Operator: "olga", Reason: "a test"}

// shop is a workspace with a channel on every platform, and an endpoint for each of two bots.
func shop(f *testing.F) *pg.Store {
	f.Helper()
	db := pgtest.New(f)
	posttest.Workspace(db, "w")
	db.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, settings)
		select 'w', p.platform, p.platform, 'any', p.platform, p.platform, '{"long_text": "split"}' from autopost.platforms p`)
	db.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'telegram', 'telegram', 'env:T'), ('w', 'max', 'max', 'env:M')`)
	db.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, meta)
		select 'w', 'bot-' || b.auth_ref, 'bot_webhook', encode(sha256(b.auth_ref::bytea), 'hex'), jsonb_build_object('auth_ref', b.auth_ref) from autopost.credential_bindings b`)
	store, err := pg.Open(f.Context(), pg.Options{URL: db.URL("")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(store.Close)
	return store
}

// ours fails on any error but a refusal that names an argument.
func ours(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, pg.ErrArgument) {
		t.Fatal(err)
	}
}

type plan struct {
	Status   string
	Channels []struct {
		Platform string `json:"platform"`
		Verdict  string `json:"verdict"`
		Text     string `json:"text"`
	}
}

func planned(t *testing.T, store *pg.Store, post string) (p plan) {
	t.Helper()
	raw, err := store.Plan(t.Context(), "w", json.RawMessage(post), "")
	ours(t, err)
	if err == nil {
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

var tag = regexp.MustCompile(`<(/?)([a-z-]+)[^<>]*>`)

// balanced fails on markup whose tags do not close as they opened.
func balanced(t *testing.T, text string) {
	t.Helper()
	var open []string
	for _, m := range tag.FindAllStringSubmatch(text, -1) {
		switch last := len(open) - 1; {
		case m[1] == "":
			open = append(open, m[2])
		case last < 0 || open[last] != m[2]:
			t.Fatalf("%q closes %s, which is not the last that opened", text, m[2])
		default:
			open = open[:last]
		}
	}
	if len(open) > 0 {
		t.Fatalf("%q leaves %v open", text, open)
	}
}

// Any JSON as a post is planned or refused by field.
func FuzzPost(f *testing.F) {
	store := shop(f)
	for _, seed := range []string{
		`{"text": "Hello"}`, `{"text": 1}`, `[]`, `{}`, `{"text": "t", "scheduled_for": "2026-12-01T10:00:00+03:00"}`, `{"text": "a\u0000b"}`,
		`{"media": [{"type": "image", "url": "https://example.org/x.png", "caption": "c", "alt": "a"}, {"type": "video", "file_id": "f"}], "text": "t"}`,
		`{"text": "t", "variants": {"x": {"text": "short"}, "youtube": {"title": "T"}}, "tags": ["Ru", "ru "], "routing": {"include_channels": ["x"]}}`,
		`{"template": {"name": "digest", "vars": {"title": "T"}}}`, `{"text": "t", "buttons": [[{"text": "Open", "url": "https://example.org"}]]}`,
		`{"text": "t", "media": [{"type": "image", "file_id": "f"}], "thread": [{"text": "<b>", "media": [1]}, {"text": "u"}, {}], "first_comment": "v", "parse_mode": "HTML"}`,
		`{"text": "t", "thread": [{"text": "u"}], "first_comment": " ", "variants": {"x": {"thread": null, "first_comment": null}, "max": {"thread": [{"media": ["1"]}]}}}`,
		`{"text": "t", "link": "https://EXAMPLE.org:443/a?utm_source=x&b=1#f", "links": ["http://пример.рф/"]}`, `{"text": "\ud800"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, post string) {
		if json.Valid([]byte(post)) {
			planned(t, store, post)
		}
	})
}

// Any text in HTML or Markdown is refused or becomes markup that closes each element.
func FuzzMarkup(f *testing.F) {
	store := shop(f)
	for _, seed := range []string{
		"**b** _i_ ~~s~~ `c` [t](https://x.example) > q", "<b>b<i>x</i></b> &amp; <a href=\"https://example.org/?a=1\">t</a><pre>  k </pre>", "<b>", "&#x41;&lt;", "***a** b*",
		"```\ncode\n```", "[a](b \"c\")", "<tg-spoiler>x</tg-spoiler>", "e\u0301 👩‍👩‍👧 \u202e", "\\*", "<a href='x'>", "</b>", "> a\n> b\n\n- c", strings.Repeat("<b>word</b> ", 700),
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, html bool) {
		mode := "Markdown"
		if html {
			mode = "HTML"
		}
		post, err := json.Marshal(map[string]string{"text": text, "parse_mode": mode})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range planned(t, store, string(post)).Channels {
			if slices.Contains([]string{"telegram", "max"}, c.Platform) && c.Verdict == "queued" {
				balanced(t, c.Text)
			}
		}
	})
}

// Any JSON as a route is refused by field or routes posts.
func FuzzRoute(f *testing.F) {
	store := shop(f)
	for _, seed := range []string{
		`{"include_any": ["ru"]}`, `{"include_all": ["a", "b"], "exclude": ["c"]}`, `null`, `{}`, `{"include_any": []}`, `{"include_any": "ru"}`, `{"include_any": [1]}`,
		`{"incude_any": ["ru"]}`, `[]`, `{"exclude": ["Ru"]}`, `{"exclude": [null]}`, `7`,
	} {
		f.Add(seed, "ru")
	}
	f.Fuzz(func(t *testing.T, filter, word string) {
		if !json.Valid([]byte(filter)) {
			return
		}
		_, err := store.PutChannel(t.Context(), act, "telegram", pg.Fields{"route_filter": json.RawMessage(filter)})
		ours(t, err)
		post, err := json.Marshal(map[string]any{"text": "t", "tags": []string{word}})
		if err != nil {
			t.Fatal(err)
		}
		planned(t, store, string(post))
	})
}

// Any template is refused by field or renders a post.
func FuzzTemplate(f *testing.F) {
	store := shop(f)
	for _, seed := range []string{"{title}", "{title?} {link}", "{", "}", "{{title}}", "{title", "{Title}", "{a b}", "**{title}**", "{title}\n\n{summary}", "{0}"} {
		f.Add(seed, "T", "Markdown", 100)
		f.Add(seed, "<b>@x {title}", "HTML", 0)
	}
	f.Fuzz(func(t *testing.T, body, value, mode string, most int) {
		written := pg.Template{Body: body, Vars: []string{"title", "summary"}, ParseMode: mode, MaxLength: most}
		_, err := store.PutTemplate(t.Context(), act, api.TemplateKey{ID: "fuzz", Platform: "*"}, written)
		ours(t, err)
		post, err := json.Marshal(map[string]any{"template": map[string]any{"name": "fuzz", "vars": map[string]string{"title": value}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, platform := range []string{"telegram", "x"} {
			raw, err := store.PreviewTemplate(t.Context(), "w", api.TemplateKey{ID: "fuzz", Platform: platform}, &written, post)
			ours(t, err)
			var shown pg.Preview
			if err == nil {
				err = json.Unmarshal(raw, &shown)
			}
			if err != nil {
				continue
			}
			if platform == "telegram" && shown.Status == "ok" && mode != "" && mode != "None" {
				balanced(t, shown.Text)
			}
		}
	})
}

// Any update of a platform is accepted or refused as an argument.
func FuzzUpdate(f *testing.F) {
	store := shop(f)
	for _, seed := range []string{
		`{"update_id":1,"my_chat_member":{"chat":{"id":-100,"type":"channel","title":"T","username":"any"},"date":1795000000,"new_chat_member":{"status":"kicked"}}}`,
		`{"update_id":2,"my_chat_member":{"chat":{"id":-100,"type":"channel"},"date":1795000000,"new_chat_member":{"status":"administrator","can_post_messages":true}}}`,
		`{"update_id":3,"message":{"chat":{"id":-5,"type":"group"},"migrate_to_chat_id":-1005,"text":"t"}}`,
		`{"update_id":-9.5e300,"callback_query":{"message":{"chat":[]}},"date":{}}`, `{"update_id":[],"my_chat_member":{"chat":{"id":1e18,"type":1}}}`,
		`{"update_type":"bot_added","timestamp":1795000003000,"chat_id":-7,"user":{"user_id":5},"is_channel":true}`,
		`{"update_type":"bot_removed","timestamp":-1,"chat_id":-7,"user":7,"is_channel":"yes"}`, `{"update_type":"message_callback","callback":{"callback_id":"c"},"message":null}`,
		`{"update_type":"message_edited","timestamp":1e308,"message":{"recipient":{"chat_id":0.5,"chat_type":[]},"body":{"mid":"mid.1","text":7}}}`, `[]`, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, update string) {
		if !json.Valid([]byte(update)) {
			return
		}
		for _, endpoint := range []string{"bot-telegram", "bot-max"} {
			_, err := store.ReceiveUpdate(t.Context(), "w", endpoint, json.RawMessage(update))
			ours(t, err)
		}
	})
}
