package published

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
)

// Each answer of the simulator of MAX is as the published description of its operation says.
func TestMAXAnswersAsPublished(t *testing.T) {
	t.Parallel()
	api, ok := patched(t)
	if !ok {
		return
	}
	// The text of Chat.type names three values, the enumeration one. Recorded answers have all three.
	api.Components.Schemas = maps.Clone(api.Components.Schemas)
	api.Components.Schemas["ChatType"] = maxSchema{Type: "string", Enum: []any{"chat", "channel", "dialog"}}
	var document struct {
		Components struct {
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"components"`
	}
	Data(t, "max-bot-api.openapi.json", &document)
	const token = "f9LHod-a-token"
	s := maxmessenger.New(sim.NewCore(0), maxmessenger.Options{})
	require.NoError(t, s.AddBot(token))
	s.AddChat(maxmessenger.Chat{ID: -70801090403050, Title: "Demo", Username: "demo_shop"})
	ask := func(method, path, body string) map[string]any {
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request.Header.Set("Authorization", token)
		request.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, request)
		require.Equal(t, http.StatusOK, w.Code, "%s %s: %s", method, path, w.Body)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		operation, known := api.operation(request)
		require.True(t, known, path)
		var described struct {
			Ref     string `json:"$ref"`
			Content map[string]struct {
				Schema maxSchema `json:"schema"`
			} `json:"content"`
		}
		require.NoError(t, json.Unmarshal(operation.Responses["200"], &described))
		if shared := strings.TrimPrefix(described.Ref, "#/components/responses/"); shared != "" {
			require.NoError(t, json.Unmarshal(document.Components.Responses[shared], &described))
		}
		assert.NoError(t, api.check(described.Content["application/json"].Schema, "answer", answer), "%s %s: %s", method, path, w.Body)
		return answer
	}
	ask(http.MethodGet, "/me", "")
	ask(http.MethodGet, "/chats/-70801090403050", "")
	sent := ask(http.MethodPost, "/messages?chat_id=-70801090403050", `{"text": "one", "attachments": null, "link": null}`)
	mid := sent["message"].(map[string]any)["body"].(map[string]any)["mid"].(string)
	ask(http.MethodGet, "/messages?chat_id=-70801090403050", "")
	ask(http.MethodGet, "/messages/"+mid, "")
	ask(http.MethodPut, "/messages?message_id="+mid, `{"text": "two", "attachments": null, "link": null}`)
	ask(http.MethodPut, "/chats/-70801090403050/pin", `{"message_id": "`+mid+`"}`)
	ask(http.MethodDelete, "/chats/-70801090403050/pin", "")
	ask(http.MethodPost, "/uploads?type=image", "")
	ask(http.MethodDelete, "/messages?message_id="+mid, "")
	ask(http.MethodGet, "/subscriptions", "")
}
