package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/api"
)

// A list answers every query with rows or a problem.
func FuzzParameters(f *testing.F) {
	for _, query := range []string{
		"", "limit=1", "limit=-1", "limit=9999999999999999999", "limit=1&limit=2", "cursor=!", "status=sent", "status=", "since=2026-12-01T10:00:00Z", "since=x",
		"channel_id=%00", "channel_id=%ff", "channel_id=%", "a=b", ";", "message_id=0199c6a0-0000-7000-8000-000000000000", "until=2026-12-01T10:00:00%2B03:00",
	} {
		f.Add("deliveries", query)
		f.Add("events", query)
		f.Add("templates", query)
	}
	h := api.Handler(deps(&store{}))
	f.Fuzz(func(t *testing.T, list, query string) {
		if strings.ContainsAny(list, "/.") || strings.Contains(query, "#") {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/api/v1/messages", nil)
		r.URL = &url.URL{Path: "/api/v1/" + list, RawQuery: query}
		r.Header.Set("Authorization", "Bearer "+secret)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			require.Contains(t, []int{400, 404, 405, 422}, w.Code, w.Body.String())
			requireProblem(t, w, w.Code)
		}
	})
}
