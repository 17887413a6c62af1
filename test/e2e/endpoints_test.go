package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// made is what the commands answer about a new secret.
type made struct {
	EndpointID string `json:"endpoint_id"`
	Secret     string `json:"secret"`
	Curl       string `json:"curl"`
	Applied    bool   `json:"applied"`
}

func endpoint(t *testing.T, h *harness.Harness, args ...string) (answer made) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(ok(t, h, append([]string{"endpoint"}, append(args, because, "--json")...)...)), &answer))
	return answer
}

// The life of an endpoint by commands: its secret is printed once and rotated without a gap. The
// old one ends when an operator ends it.
func TestEndpointByCommands(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	require.Contains(t, ok(t, h, "endpoint", "add", "shop", because, "--dry-run"), "dry run")
	shop := endpoint(t, h, "add", "shop", "--rps", "500", "--url", "https://posts.example.org/")
	require.Equal(t, "shop", shop.EndpointID)
	require.True(t, strings.HasPrefix(shop.Curl, "curl -sS https://posts.example.org/hooks/push -H 'Authorization: Bearer "+shop.Secret+"'"), shop.Curl)
	require.Equal(t, 202, h.Push(d, shop.Secret, harness.Post("text", "From the shop")).Status)

	rotated := endpoint(t, h, "rotate", "shop")
	require.Equal(t, "shop-2", rotated.EndpointID)
	require.NotEqual(t, shop.Secret, rotated.Secret)
	for n, secret := range []string{shop.Secret, rotated.Secret} {
		require.Equal(t, 202, h.Push(d, secret, harness.Post("text", fmt.Sprint("While both live ", n))).Status)
	}
	ok(t, h, "endpoint", "disable", "shop", because)
	require.Equal(t, 401, h.Push(d, shop.Secret, harness.Post("text", "Too late")).Status)
	require.Equal(t, 202, h.Push(d, rotated.Secret, harness.Post("text", "In time")).Status)

	require.Contains(t, ok(t, h, "endpoint", "set", "shop-2", "--rps", "2", "--max-payload-bytes", "100", because), "ingress_rps")
	require.Equal(t, 413, h.Push(d, rotated.Secret, harness.Post("text", strings.Repeat("x", 100))).Status)
	require.Contains(t, ok(t, h, "endpoint", "list"), "shop-2")
	shown := ok(t, h, "endpoint", "show", "shop-2")
	require.Contains(t, shown, `payload_rejected: 1`)
	for _, secret := range []string{shop.Secret, rotated.Secret} {
		require.NotContains(t, shown+ok(t, h, "endpoint", "list", "--json")+d.Log(), secret)
	}
	require.Equal(t, []string{"put_endpoint", "rotate_endpoint", "disable_endpoint", "put_endpoint"}, pgtest.Column[string](h.DB, `select action from autopost.admin_audit_log order by seq`))

	own := h.RunWithInput("a-secret-of-my-own\n", "endpoint", "add", "mine", "--secret-file", "-", because)
	require.Zero(t, own.Code, own.Stderr)
	require.NotContains(t, own.Stdout+own.Stderr, "a-secret-of-my-own")
	require.Equal(t, 202, h.Push(d, "a-secret-of-my-own", harness.Post("text", "Mine")).Status)

	for says, args := range map[string][]string{
		"source_id does not fit":     {"add", "feed", "--kind", "pull_source"},
		"must be an existing source": {"add", "feed", "--source", "nowhere"},
		"field flag must be set":     {"set", "shop-2"},
		"meta must be an object":     {"set", "shop-2", "--meta", "[]"},
		"--keep must be used with":   {"rotate", "shop-2", "--keep", "1h"},
	} {
		result := h.Run(nil, append([]string{"endpoint"}, append(args, because)...)...)
		require.Equal(t, 2, result.Code, args)
		require.Contains(t, result.Stderr, says)
	}
	for says, args := range map[string][]string{
		"shop-2 already exists":    {"add", "shop-2"},
		"already has these values": {"disable", "shop"},
		"unknown endpoint: run":    {"rotate", "nowhere"},
		"unknown endpoint nowhere": {"set", "nowhere", "--rps", "1"},
	} {
		result := h.Run(nil, append([]string{"endpoint"}, append(args, because)...)...)
		require.Equal(t, 1, result.Code, args)
		require.Contains(t, result.Stderr, says)
	}
	h.Verified()
}

// A dry run shows the effect of a body and writes nothing.
func TestEndpointTriesABody(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	ok(t, h, "endpoint", "set", "cms", "--max-payload-bytes", "200", because)
	planned := h.RunWithInput(`[{"text": "Would it?"}, {"text": "x\u0000"}]`, "endpoint", "test", "cms")
	require.Equal(t, 1, planned.Code)
	require.Contains(t, planned.Stdout, "2 of 2 channels would get it")
	require.Contains(t, planned.Stderr, "post 2: text contains the NUL character")
	for body, says := range map[string]string{
		`{"text"`:                         "not JSON",
		harness.Post("colour", "red"):     "text",
		strings.Repeat(" ", 201):          "must have at most 200 bytes",
		`[` + strings.Repeat("1,", 60):    "not JSON",
		`{"text":"ok","scheduled_for":7}`: "scheduled_for",
	} {
		result := h.RunWithInput(body, "endpoint", "test", "cms")
		require.Equal(t, 1, result.Code, body)
		require.Contains(t, result.Stderr, says)
	}
	require.Equal(t, 0, pgtest.Value[int](h.DB, `select count(*)::int from autopost.ingest_runs`))
}

const (
	firstKey  = "whsec_Zmlyc3QtY2FuYXJ5LXNpZ25pbmcta2V5"
	secondKey = "whsec_c2Vjb25kLWNhbmFyeS1zaWduaW5nLWtleQ=="
)

// withSigned takes signed requests at news/signed; its keys are in the environment.
func withSigned(t *testing.T) (h *harness.Harness, keys []string) {
	h, _, _ = newsroom(t)
	keys = []string{"TEST_FIRST_KEY=" + firstKey, "TEST_SECOND_KEY=" + secondKey}
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values
		('news', 'first', 'webhook', 'env:TEST_FIRST_KEY'), ('news', 'second', 'webhook', 'env:TEST_SECOND_KEY')`)
	ok(t, h, "endpoint", "add", "signed", "--signing-ref", "first", "--rps", "1000", because)
	return h, keys
}

func signed(t *testing.T, h *harness.Harness, d *harness.Daemon, s harness.Signed) harness.Answer {
	t.Helper()
	if s.Path == "" {
		s.Path = "news/signed"
	}
	if s.At.IsZero() {
		s.At = time.Now()
	}
	answer, err := h.TrySigned(d.URL, s)
	require.NoError(t, err)
	return answer
}

// A signature is all that a signed request needs, and its id is taken once, whichever
// daemon it reaches and however many bring it at the same moment.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	h, keys := withSigned(t)
	first, second := h.Serve(keys...), h.Serve(keys...)
	body := harness.Post("text", "Signed")
	answer := signed(t, h, first, harness.Signed{ID: "msg-1", Key: firstKey, Body: body})
	require.Equal(t, 202, answer.Status, answer.Body)
	again := signed(t, h, second, harness.Signed{ID: "msg-1", Key: firstKey, Body: body})
	require.Equal(t, 200, again.Status)
	require.Equal(t, answer.Text("message_id"), again.Text("message_id"))

	const twins = 20
	var group sync.WaitGroup
	statuses := make([]int, twins)
	for n := range twins {
		group.Go(func() {
			d := []*harness.Daemon{first, second}[n%2]
			twin, err := h.TrySigned(d.URL, harness.Signed{Path: "news/signed", ID: "msg-2", Key: firstKey, At: time.Now(), Body: harness.Post("text", fmt.Sprint("Twin ", n))})
			if err == nil {
				statuses[n] = twin.Status
			}
		})
	}
	group.Wait()
	counts := map[int]int{}
	for _, status := range statuses {
		counts[status]++
	}
	require.Equal(t, map[int]int{202: 1, 200: twins - 1}, counts)

	for says, s := range map[string]harness.Signed{
		"clock-skew":         {ID: "msg-3", Key: firstKey, Body: body, At: time.Now().Add(-10 * time.Minute)},
		"signature-mismatch": {ID: "msg-3", Key: secondKey, Body: body},
	} {
		refused := signed(t, h, first, s)
		require.Equal(t, 401, refused.Status)
		require.Equal(t, "urn:autopost:problem:"+says, refused.Text("type"))
	}
	for _, path := range []string{"news/nowhere", "nowhere/signed", "news/cms"} {
		refused := signed(t, h, first, harness.Signed{Path: path, ID: "msg-3", Key: firstKey, Body: body})
		require.Equal(t, signed(t, h, first, harness.Signed{ID: "msg-3", Key: secondKey, Body: body}).Body, refused.Body, path)
	}
	h.Drained("news")
	require.Len(t, h.Accepted(), 4, "two posts to two channels")
	require.NotContains(t, first.Log(), firstKey)
	h.Verified()
}

// Two keys live while they are exchanged; a key that leaked ends at once.
func TestSigningKeysAreExchanged(t *testing.T) {
	t.Parallel()
	h, keys := withSigned(t)
	d := h.Serve(keys...)
	status := func(key string) int {
		return signed(t, h, d, harness.Signed{ID: fmt.Sprint("msg-", time.Now().UnixNano()), Key: key, Body: harness.Post("text", fmt.Sprint(time.Now().UnixNano()))}).Status
	}
	require.Equal(t, []int{202, 401}, []int{status(firstKey), status(secondKey)})
	ok(t, h, "endpoint", "rotate", "signed", "--signing-ref", "second", "--keep", "1h", because)
	require.Equal(t, []int{202, 202}, []int{status(firstKey), status(secondKey)})
	require.Equal(t, 1, h.Run(nil, "endpoint", "rotate", "signed", "--signing-ref", "first", because).Code, "two are enough")
	h.Exec(`update autopost.workspace_endpoints set old_signing_until = now() where endpoint_id = 'signed'`)
	require.Equal(t, []int{401, 202}, []int{status(firstKey), status(secondKey)})

	captured := filepath.Join(t.TempDir(), "request")
	require.NoError(t, os.WriteFile(captured, []byte("POST /hooks/push/news/signed HTTP/1.1\nwebhook-id: msg-1\nwebhook-timestamp: 1764583200\n"+
		"webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\n\n{\"text\": \"a\"}"), 0o600))
	judged := h.Run(keys, "endpoint", "test", "signed", "--request", captured)
	require.Equal(t, 1, judged.Code)
	require.Contains(t, judged.Stderr, "no signature matches this body of 13 bytes")
}

// A hundred senders at once are accepted or asked to wait, and nothing else. Refusals are counted
// exactly, without a row for each.
func TestHundredSendersAtOnce(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	// So few a second that most are refused on the slowest machine.
	h.Exec(`update autopost.workspace_endpoints set ingress_rps = 2`)
	d := h.Serve()
	const senders, each = 100, 3
	var group sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for n := range senders {
		group.Go(func() {
			for m := range each {
				answer, err := h.TryPush(d.URL, "secret-cms", harness.Post("text", fmt.Sprintf("Sender %d, post %d", n, m)))
				mu.Lock()
				if err != nil {
					answer.Status = 0
				}
				statuses[answer.Status]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	require.Equal(t, senders*each, statuses[202]+statuses[429], statuses)
	require.Positive(t, statuses[202])
	require.Greater(t, statuses[429], 100)
	require.Equal(t, map[string]any{"limited": float64(statuses[429]), "taken": float64(statuses[202])}, h.JSON(`select jsonb_build_object(
		'limited', sum((stats_json ->> 'rate_limited')::int), 'taken', count(*) filter (where stats_json ->> 'accepted' = '1')) from autopost.ingest_runs`))
	dropped := pgtest.Value[int](h.DB, `select count(*)::int from autopost.ingest_runs where stats_json ? 'rate_limited'`)
	seconds := pgtest.Value[float64](h.DB, `select extract(epoch from max(started_at) - min(started_at))::float8 from autopost.ingest_runs`)
	require.LessOrEqual(t, float64(dropped), 5*(seconds+2)+1, "five rows a second, and one for the rest")
	require.LessOrEqual(t, events(h, "ingress_rate_limited"), dropped)
	h.Drained("news")
	require.Len(t, h.Accepted(), 2*statuses[202])
	h.Verified()
}
