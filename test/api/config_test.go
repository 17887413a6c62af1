package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// A configuration is exported, compared and applied over HTTP. It does not reach what belongs to the server.
func TestConfigurationAsAFile(t *testing.T) {
	t.Parallel()
	w := open(t)
	owner := func(method, path string, body map[string]any) reply {
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		c := call{method: method, path: "/api/v1/config" + path, key: w.keys["owner"], header: map[string]string{"X-Autopost-Reason": "a test"}}
		if body != nil {
			c.body = string(raw)
		}
		return w.ask(c)
	}
	w.Exec(`select autopost.put_source('acme', 'keyed', '{"kind": "rss", "config_json": {"url": "https://feeds.example/rss?api_key=topsecret"}}', 'ann', 'r', false)`)
	exported := owner(http.MethodGet, "", nil)
	require.Equal(t, 200, exported.status, exported.raw)
	text := exported.body["text"].(string)
	require.Contains(t, text, "feeds.example")
	require.NotContains(t, text, "topsecret")
	// The rows of the test have no endpoints before.
	require.Equal(t, 200, owner(http.MethodPost, "/apply", map[string]any{"text": text}).status)
	same := owner(http.MethodPost, "/diff", map[string]any{"text": text})
	require.Equal(t, "unchanged", same.body["reason"], same.raw)

	changed := strings.Replace(text, "workspaces:", "settings:\n  max_attempts: 9\nworkspaces:\n  rival:\n    name: taken\n", 1)
	changed = strings.Replace(changed, "url: https://horse.example", "url: https://stable.example", 1)
	diff := owner(http.MethodPost, "/diff", map[string]any{"text": changed})
	require.Equal(t, []any{"settings", "workspace rival"}, diff.body["ignored"])
	require.NotEmpty(t, diff.body["items"], diff.raw)
	require.NotContains(t, diff.raw, "topsecret")
	require.Equal(t, 409, owner(http.MethodPost, "/apply", map[string]any{"text": changed, "digest": strings.Repeat("0", 64)}).status)
	applied := owner(http.MethodPost, "/apply", map[string]any{"text": changed, "digest": diff.body["digest"]})
	require.Equal(t, true, applied.body["applied"], applied.raw)
	require.Equal(t, "topsecret", pgtest.Value[string](w.DB, `select split_part(config_json ->> 'url', '=', 2) from autopost.pull_sources where workspace_id = 'acme' and source_id = 'keyed'`))
	require.Equal(t, "5", pgtest.Value[string](w.DB, `select value::text from autopost.settings where key = 'max_attempts'`))

	for ref, status := range map[string]int{"env:PATH": 422, "file:/etc/passwd": 422, "sealed:m-acme": 422, "sealed:new": 200} {
		r := owner(http.MethodPost, "/diff", map[string]any{"text": "workspaces:\n  acme:\n    credentials:\n      new:\n        platform: telegram\n        secret_ref: " + ref + "\n"})
		require.Equal(t, status, r.status, ref+" "+r.raw)
	}
	wide := owner(http.MethodPost, "/diff", map[string]any{"text": "workspaces:\n  acme:\n    credentials:\n      b-acme:\n        platform: telegram\n        secret_ref: env:horse\n        hosts: [evil.example]\n"})
	require.Equal(t, 422, wide.status, "a secret of the server is not sent to another host")
	wrong := owner(http.MethodPost, "/diff", map[string]any{"text": "workspaces:\n  acme:\n    channels:\n      c-acme:\n        platform: telegram\n        target_id: '@a'\n        auth_ref: bot-2\n        rate_rps: -1\n"})
	require.Equal(t, 422, wrong.status)
	require.Contains(t, wrong.raw, "autopost.yaml:8")
	table := owner(http.MethodPost, "/diff", map[string]any{"format": "channels", "text": "channel_id,title\nc-acme,Fresh\n"})
	require.Equal(t, 200, table.status, table.raw)
	require.Contains(t, table.raw, "Fresh")
	require.Empty(t, table.body["unnamed"], "a table is about its channels alone")
}
