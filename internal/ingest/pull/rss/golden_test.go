package rss

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"autopost/internal/ingest/pull"
)

var update = flag.Bool("update", false, "write the golden files")

// client may connect to loopback servers.
var client = &http.Client{}

// serve answers every request with a body and a content type.
func serve(t *testing.T, body []byte, contentType string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// source returns a source that was polled before.
func source(config map[string]any) pull.Source {
	raw, _ := json.Marshal(config)
	return pull.Source{WorkspaceID: "w", SourceID: "s", Kind: "rss", Config: raw, Cursor: json.RawMessage(`{"first_seen_done":true}`)}
}

func TestRealFeeds(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			require.NoError(t, err)
			address := serve(t, body, "text/xml; charset=utf-8")
			batch, err := New(client).Fetch(t.Context(), source(map[string]any{
				"url": address + "/feed", "template": "{title}\n\n{summary}\n\n{author} / {categories}\n{link}", "tags": []string{"Новостройки"},
			}))
			require.NoError(t, err)
			for i := range batch.Items {
				require.NotEmpty(t, batch.Items[i].Cursor)
				batch.Items[i].Cursor = nil
			}
			var got strings.Builder
			encoder := json.NewEncoder(&got)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			require.NoError(t, encoder.Encode(batch.Items))
			// The server's port changes with each run.
			result := strings.ReplaceAll(got.String(), address, "http://feed.test")
			golden := file + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(result), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(string(want), result))
		})
	}
}
