package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// operation is a route in the OpenAPI document.
type operation struct {
	ID     string `json:"operationId"`
	Method string
	Path   string

	Summary, Description string
	Tags                 []string
	Parameters           []parameter
	RequestBody          *struct {
		Content map[string]struct{ Example any }
	}
	Responses map[string]response
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]struct {
		Schema  json.RawMessage
		Example any
	}
}

type parameter struct {
	Name, In string
	Required bool
	Schema   struct{ Examples []any }
}

// asking are operations of POST that may be repeated: they ask, or only their last call counts.
var asking = []string{"plan-post", "preview-template", "preview-x-post", "test-credential", "check-credential", "discover-chats", "create-session", "confirm-me",
	"try-bot", "replay-bot", "lint-bot-rules", "test-source", "diff-config"}

// writes reports whether the operation changes something.
func (o operation) writes() bool {
	return o.Method != http.MethodGet && !slices.Contains(asking, o.ID)
}

// success returns the status of a success with a change.
func (o operation) success() (last string) {
	for status := range o.Responses {
		if strings.HasPrefix(status, "2") {
			last = max(last, status)
		}
	}
	return last
}

// has reports whether a path belongs to the operation.
func (o operation) has(path string) bool {
	want, parts := strings.Split(o.Path, "/"), strings.Split(path, "/")
	return len(want) == len(parts) && !slices.ContainsFunc(want, func(part string) bool {
		at := parts[0]
		parts = parts[1:]
		return part != at && !strings.HasPrefix(part, "{")
	})
}

func (w *world) describe() {
	w.t.Helper()
	r := w.ask(call{method: http.MethodGet, path: "/openapi.json"})
	require.Equal(w.t, 200, r.status)
	w.document = []byte(r.raw)
	var document struct {
		Paths      map[string]map[string]operation
		Components struct{ Responses map[string]response }
	}
	require.NoError(w.t, json.Unmarshal(w.document, &document))
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			o := document.Paths[path][method]
			o.Path, o.Method = path, strings.ToUpper(method)
			for status, shared := range o.Responses {
				if shared.Ref != "" {
					o.Responses[status] = document.Components.Responses[strings.TrimPrefix(shared.Ref, "#/components/responses/")]
				}
			}
			w.operations = append(w.operations, o)
		}
	}
	require.Greater(w.t, len(w.operations), 50)
	// Operations that remove a credential or an endpoint run after those that need it, those that create what they do not find after those
	// that explain it. After an event or a retry the daemon changes
	// the submission.
	last := []string{"remove-credential", "remove-invitation", "put-source", "put-webhook", "rotate-channel-auth", "rotate-endpoint", "disable-endpoint", "skip-post", "submit-event", "retry-submission"}
	rank := func(o operation) int {
		if o.ID == "open-stream" { // it comes first: later it shows what the calls before it did
			return -2
		}
		return slices.Index(last, o.ID)
	}
	slices.SortStableFunc(w.operations, func(a, b operation) int { return cmp.Compare(rank(a), rank(b)) })
}

// request returns a call of an operation on objects of a workspace. It fails for an operation that it does not know, so
// that every operation is tested.
func (w *world) request(o operation, workspace string) call {
	w.t.Helper()
	ids := w.ids[workspace]
	c := call{method: o.Method, path: o.Path}
	query := url.Values{}
	for _, p := range o.Parameters {
		switch {
		case p.In == "path":
			name := p.Name
			switch {
			case o.ID == "skip-occurrence" && name == "recurrence_id":
			case ids[o.ID] != "":
				name = o.ID
			case name == "id":
				name = o.Tags[0]
			case name == "delivery_id" && strings.HasSuffix(o.ID, "-delivery") && o.Method == http.MethodPost && o.ID != "resolve-delivery" && o.ID != "reschedule-delivery":
				name = "delivery_id sent"
			case name == "message_id" && o.Method == http.MethodPost && o.ID != "skip-post" && o.ID != "reschedule-post":
				name = "message_id sent"
			case name == "submission_id" && ids["submission_id "+strings.TrimSuffix(o.ID, "-submission")] != "":
				name = "submission_id " + strings.TrimSuffix(o.ID, "-submission")
			case name == "job_id" && o.ID == "prepare-publish-job":
				name = "job_id prepare"
			case o.ID == "resolve-delivery":
				name = "delivery_id held"
			}
			require.NotEmpty(w.t, ids[name], "%s: nothing is known of the parameter %s", o.ID, p.Name)
			c.path = strings.ReplaceAll(c.path, "{"+p.Name+"}", url.PathEscape(ids[name]))
		case p.In == "query" && p.Required:
			require.NotEmpty(w.t, p.Schema.Examples, "%s: no example of %s", o.ID, p.Name)
			query.Set(p.Name, cmp.Or(map[string]string{
				"from": time.Now().AddDate(0, 0, -1).Format(time.RFC3339), "until": time.Now().AddDate(0, 0, 30).Format(time.RFC3339), "channel_id": ids["channels"],
			}[p.Name], p.Schema.Examples[0].(string)))
		}
	}
	if o.ID == "open-stream" {
		query.Set("seconds", "1")
	}
	if len(query) > 0 {
		c.path += "?" + query.Encode()
	}
	switch {
	case o.RequestBody == nil:
	case o.RequestBody.Content["application/octet-stream"].Example != nil || o.ID == "upload-media":
		c.body, c.header = picture, map[string]string{"Content-Type": "application/octet-stream"}
	default:
		example := o.RequestBody.Content["application/json"].Example
		require.NotNil(w.t, example, "%s has no example of its body", o.ID)
		body, _ := example.(map[string]any)
		if _, named := body["delivery_ids"]; named {
			body["delivery_ids"] = []string{ids[map[string]string{"requeue-deliveries": "delivery_id dead", "skip-deliveries": "delivery_id queued", "reschedule-deliveries": "delivery_id queued"}[o.ID]]}
		}
		if _, named := body["act_ids"]; named {
			body["act_ids"] = []string{ids["act_id"]}
		}
		if o.Tags[0] == "config" {
			body["text"] = fmt.Sprintf("workspaces:\n  %s:\n    name: %s\n    status: paused\n", workspace, o.ID)
		}
		if o.ID == "test-source" {
			body["config_json"] = map[string]any{"url": "http://127.0.0.1:1/feed"} // it is refused: no test calls another machine
		}
		if o.ID == "link-credential" {
			body["platform"], body["client_secret"] = "youtube", "secret-of-the-app"
		}
		if _, named := body["blob_ref"]; named {
			body["blob_ref"], body["auth_ref"] = ids["blob_ref"], ids["max"]
		}
		raw, err := json.Marshal(body)
		require.NoError(w.t, err)
		c.body = string(raw)
	}
	return c
}

// picture is the smallest PNG: one pixel.
const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

func TestEveryOperationIsDescribed(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, o := range w.operations {
		require.NotEmpty(t, o.ID)
		require.NotEmpty(t, o.Summary, o.ID)
		require.Contains(t, o.Description, "Needs the role ", o.ID)
		require.Len(t, o.Tags, 1, o.ID)
		statuses := slices.Collect(maps.Keys(o.Responses))
		require.Subset(t, statuses, []string{"401", "403", "406", "422", "429", "500", "503", "507"}, o.ID)
		if strings.Contains(o.Path, "{") {
			require.Contains(t, statuses, "404", o.ID)
		}
		if o.Method != http.MethodGet {
			require.Subset(t, statuses, []string{"400", "409", "413", "415"}, o.ID)
		}
		if o.writes() {
			require.True(t, slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.Name == "Idempotency-Key" }), "%s takes no Idempotency-Key", o.ID)
		}
		for status, response := range o.Responses {
			require.NotEmpty(t, response.Description, "%s %s", o.ID, status)
			media := response.Content["application/json"]
			switch o.ID {
			case "open-stream":
				media = response.Content["text/event-stream"]
			case "get-picture":
				media = response.Content["image/png"]
			}
			if status >= "4" {
				media = response.Content["application/problem+json"]
			}
			require.NotEmpty(t, media.Schema, "%s %s", o.ID, status)
			require.NotNil(t, media.Example, "%s %s has no example", o.ID, status)
		}
	}
	var document struct {
		OpenAPI    string
		Security   []map[string][]string
		Components struct{ SecuritySchemes map[string]any }
	}
	require.NoError(t, json.Unmarshal(w.document, &document))
	require.Regexp(t, `^3\.1\.`, document.OpenAPI)
	require.Equal(t, []map[string][]string{{"key": {}}}, document.Security)
	require.Contains(t, document.Components.SecuritySchemes, "key")
	printed := w.Run(nil, "openapi")
	require.Zero(t, printed.Code, printed.Stderr)
	require.JSONEq(t, string(w.document), printed.Stdout)
}
