package api

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Every operation is called with a key of acme and the objects of rival. No answer contains data of rival, and nothing of
// rival changes.
func TestNoOperationReachesAnotherWorkspace(t *testing.T) {
	t.Parallel()
	w := open(t)
	before := w.fingerprint("rival")
	// Lists filtered by what is rival's.
	ids := w.ids["rival"]
	for _, path := range []string{
		"/api/v1/messages?channel_id=" + ids["channels"], "/api/v1/deliveries?message_id=" + ids["message_id"], "/api/v1/deliveries?channel_id=" + ids["channels"],
		"/api/v1/events?message_id=" + ids["message_id"], "/api/v1/events?delivery_id=" + ids["delivery_id"], "/api/v1/runs?source_id=" + ids["sources"],
		"/api/v1/audit?subject=template:" + ids["templates"] + "/telegram",
	} {
		r := w.ask(call{method: http.MethodGet, path: path, key: w.keys["owner"]})
		require.Equal(t, 200, r.status, r.raw)
		require.Equal(t, []any{}, r.body["items"], path)
	}
	asked := 0
	for _, o := range w.operations {
		for _, role := range []string{"viewer", "operator", "owner"} {
			c := w.request(o, "rival")
			c.key = w.keys[role]
			r := w.ask(c)
			asked++
			require.NotContains(t, strings.ToLower(r.raw), mark, "%s shows another workspace", o.ID)
			require.Less(t, r.status, 500, "%s: %s", o.ID, r.raw)
			if o.Method == http.MethodGet && strings.Contains(o.Path, "{") && o.ID != "get-setting" && o.ID != "get-endpoint" && r.status != 403 {
				r.problem(t, 404)
			}
		}
	}
	after := w.fingerprint("rival")
	for table := range before {
		require.Equal(t, before[table], after[table], "%s of another workspace changed", table)
	}
	t.Logf("%d calls over %d operations, leaks: 0", asked, len(w.operations))
}
