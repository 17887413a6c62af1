package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvalidRequestsNameTheError(t *testing.T) {
	t.Parallel()
	w := open(t)
	channel := "/api/v1/channels/" + w.ids["acme"]["channels"]
	sent, waiting := "/api/v1/deliveries/"+w.ids["acme"]["delivery_id sent"], "/api/v1/deliveries/"+w.ids["acme"]["delivery_id queued"]
	json := map[string]string{"Content-Type": "application/json"}
	for _, c := range []struct {
		name   string
		call   call
		status int
		field  string
	}{
		{"no key", call{method: "GET", path: "/api/v1/channels"}, 401, ""},
		{"no key for an unknown path", call{method: "GET", path: "/api/v1/nothing"}, 401, ""},
		{"unknown path", call{method: "GET", path: "/api/v1/nothing", key: "owner"}, 404, ""},
		{"method", call{method: "DELETE", path: "/api/v1/channels", key: "owner"}, 405, ""},
		{"method of a path with parts", call{method: "PUT", path: channel + "/pause", key: "owner"}, 405, ""},
		{"not acceptable", call{method: "GET", path: "/api/v1/channels", key: "owner", header: map[string]string{"Accept": "text/html"}}, 406, ""},
		{"content type", call{method: "POST", path: channel + "/pause", key: "owner", body: `seconds=1`, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}, 415, ""},
		{"compressed", call{method: "POST", path: channel + "/pause", key: "owner", body: `{}`, header: map[string]string{"Content-Encoding": "gzip"}}, 415, ""},
		{"too large", call{method: "POST", path: "/api/v1/posts", key: "owner", body: `{"text": "` + strings.Repeat("x", 1<<20) + `"}`}, 413, ""},
		{"no JSON", call{method: "POST", path: channel + "/pause", key: "owner", body: `{"seconds": `}, 400, ""},
		{"no JSON for a post", call{method: "POST", path: "/api/v1/posts", key: "owner", body: `{"text`}, 400, ""},
		{"not UTF-8", call{method: "POST", path: "/api/v1/posts", key: "owner", body: "{\"text\": \"\xff\"}"}, 400, ""},
		{"no body", call{method: "POST", path: "/api/v1/posts", key: "owner", header: json}, 400, ""},
		{"unknown field", call{method: "POST", path: channel + "/pause", key: "owner", body: `{"seconds": 1, "colour": "red", "reason": "r"}`}, 422, "body.colour"},
		{"missing field", call{method: "POST", path: channel + "/pause", key: "owner", body: `{"reason": "r"}`}, 422, "body"},
		{"out of range", call{method: "POST", path: channel + "/pause", key: "owner", body: `{"seconds": 0, "reason": "r"}`}, 422, "body.seconds"},
		{"wrong type", call{method: "POST", path: channel + "/pause", key: "owner", body: `{"seconds": "x", "reason": "r"}`}, 422, "body.seconds"},
		{"an edit that says nothing", call{method: "POST", path: sent + "/edit", key: "editor", body: `{"reason": "r"}`}, 422, "body.changes"},
		{"an edit of media", call{method: "POST", path: sent + "/edit", key: "editor", body: `{"changes": {"media": []}, "reason": "r"}`}, 422, "media"},
		{"an edit that empties a post", call{method: "POST", path: sent + "/edit", key: "editor", body: `{"changes": {"text": null}, "reason": "r"}`}, 422, "text"},
		{"a removal after all is purged", call{method: "POST", path: sent + "/delete", key: "editor", body: `{"at": "2199-01-01T00:00:00Z", "reason": "r"}`}, 422, "at"},
		{"a removal of what is not sent", call{method: "POST", path: waiting + "/delete", key: "editor", body: `{"reason": "r"}`}, 409, ""},
		{"a removal of nothing", call{method: "POST", path: "/api/v1/posts/00000000-0000-7000-8000-000000000000/delete", key: "editor", body: `{"reason": "r"}`}, 404, ""},
		{"no reason", call{method: "POST", path: channel + "/pause", key: "owner", body: `{"seconds": 1}`}, 422, "reason"},
		{"blank reason", call{method: "POST", path: channel + "/pause", key: "owner", body: `{"seconds": 1, "reason": " "}`}, 422, "reason"},
		{"reason of no text", call{method: "PATCH", path: channel, key: "owner", body: `{"reason": 7}`}, 422, "body.reason"},
		{"unknown column", call{method: "PATCH", path: channel, key: "owner", body: `{"colour": "red", "reason": "r"}`}, 422, "fields"},
		{"no id", call{method: "GET", path: "/api/v1/runs/r1", key: "owner"}, 422, "path.run_id"},
		{"NUL in a path", call{method: "GET", path: "/api/v1/channels/a%00b", key: "owner"}, 404, ""},
		{"NUL in a filter", call{method: "GET", path: "/api/v1/deliveries?channel_id=a%00b", key: "owner"}, 422, "query"},
		{"invalid UTF-8 in a filter", call{method: "GET", path: "/api/v1/deliveries?channel_id=a%ffb", key: "owner"}, 422, "query"},
		{"NUL in a post", call{method: "POST", path: "/api/v1/posts", key: "owner", body: `{"text": "a\u0000b"}`}, 422, "text"},
		{"NUL deep in a post", call{method: "POST", path: "/api/v1/posts", key: "owner", body: `{"text": "a", "media": [{"type": "image", "alt": "a\u0000b"}]}`}, 422, "media[0].alt"},
		{"NUL in a name", call{method: "POST", path: "/api/v1/posts", key: "owner", body: `{"text": "a", "variants": {"a\u0000b": {}}}`}, 422, "variants"},
		{"NUL in a channel", call{method: "PATCH", path: channel, key: "owner", body: `{"target_id": "a\u0000b", "reason": "r"}`}, 422, "target_id"},
		{"number beyond all bounds", call{method: "POST", path: "/api/v1/posts", key: "owner", body: `{"text": "a", "n": 1e999999}`}, 422, "n"},
		{"limit", call{method: "GET", path: "/api/v1/messages?limit=201", key: "owner"}, 422, "query.limit"},
		{"limit of no number", call{method: "GET", path: "/api/v1/messages?limit=x", key: "owner"}, 422, "query.limit"},
		{"status", call{method: "GET", path: "/api/v1/deliveries?status=lost", key: "owner"}, 422, "query.status"},
		{"time", call{method: "GET", path: "/api/v1/messages?since=yesterday", key: "owner"}, 422, "query.since"},
		{"unknown parameter", call{method: "GET", path: "/api/v1/messages?colour=red", key: "owner"}, 422, "query.colour"},
		{"cursor", call{method: "GET", path: "/api/v1/messages?cursor=!", key: "owner"}, 422, "query.cursor"},
		{"cursor of another list", call{method: "GET", path: "/api/v1/messages?cursor=WyJhIl0", key: "owner"}, 422, "query.cursor"},
		{"events without a time", call{method: "GET", path: "/api/v1/events?action=sent", key: "owner"}, 422, "query.since"},
		{"unknown channel", call{method: "POST", path: "/api/v1/channels/none/pause", key: "owner", body: `{"seconds": 1, "reason": "r"}`}, 404, ""},
		{"unknown group", call{method: "POST", path: "/api/v1/groups/telegram/none/disable", key: "owner", body: `{"reason": "r"}`}, 404, ""},
		{"unknown template", call{method: "GET", path: "/api/v1/templates/none", key: "owner"}, 404, ""},
		{"a wrong post", call{method: "POST", path: "/api/v1/posts", key: "owner", body: `{"text": 7}`}, 422, "text"},
		{"a wrong plan", call{method: "POST", path: "/api/v1/plan", key: "owner", body: `{"text": 7}`}, 422, "text"},
		{"a wrong template", call{method: "PUT", path: "/api/v1/templates/t", key: "owner", body: `{"template": {"body": "{"}, "reason": "r"}`}, 422, "body"},
		{"unknown platform", call{method: "PUT", path: "/api/v1/templates/t", key: "owner", body: `{"platform": "pigeon", "template": {"body": "b"}, "reason": "r"}`}, 422, "platform"},
		{"unknown endpoint", call{method: "POST", path: "/api/v1/posts?endpoint_id=none", key: "owner", body: `{"text": "a"}`}, 422, "query.endpoint_id"},
		{"kind of a medium", call{method: "POST", path: "/api/v1/media?kind=scent", key: "owner", body: picture, header: map[string]string{"Content-Type": "image/png"}}, 422, "query.kind"},
		{"no kind of a medium", call{method: "POST", path: "/api/v1/media", key: "owner", body: picture, header: map[string]string{"Content-Type": "image/png"}}, 422, "query.kind"},
		{"another kind of medium", call{method: "POST", path: "/api/v1/media?kind=video", key: "owner", body: picture, header: map[string]string{"Content-Type": "image/png"}}, 422, "body"},
		{"medium too large", call{method: "POST", path: "/api/v1/media?kind=image", key: "owner", body: picture + strings.Repeat("x", 11<<20), header: map[string]string{"Content-Type": "image/png"}}, 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.call.key = w.keys[c.call.key]
			r := w.ask(c.call)
			fields := r.problem(t, c.status)
			if c.field != "" {
				require.Contains(t, fields, c.field, r.raw)
			}
			if strings.HasPrefix(c.name, "unknown channel") {
				require.Equal(t, "Nothing was changed: unknown channel none. GET /api/v1/channels lists all.", r.body["detail"])
			}
			if c.status == 405 {
				require.NotEmpty(t, r.header.Get("Allow"))
			}
		})
	}
	require.Equal(t, 422, w.ask(call{method: http.MethodGet, path: "/api/v1/messages?limit=0", key: w.keys["viewer"]}).status)
}

// An unpaired surrogate is replaced, and the post is accepted.
func TestBrokenCharactersAreReplaced(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.ask(call{method: http.MethodPost, path: "/api/v1/posts", key: w.keys["editor"], body: `{"text": "a\ud800b"}`})
	require.Equal(t, 202, r.status, r.raw)
}
