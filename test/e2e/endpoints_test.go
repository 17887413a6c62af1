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

	"autopost/internal/pgtest"
	"autopost/test/house"
)

// made is what the commands answer about a new secret.
type made struct {
	EndpointID string `json:"endpoint_id"`
	Secret     string `json:"secret"`
	Curl       string `json:"curl"`
	Applied    bool   `json:"applied"`
}

func endpoint(t *testing.T, h *house.House, args ...string) (answer made) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(ok(t, h, append([]string{"endpoint"}, append(args, because, "--json")...)...)), &answer))
	return answer
}

// An endpoint's life by commands: its secret is told once, is exchanged without a
// gap, and the old one ends when a person says so.
func TestEndpointByCommands(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	require.Contains(t, ok(t, h, "endpoint", "add", "shop", because, "--dry-run"), "dry run")
	shop := endpoint(t, h, "add", "shop", "--rps", "500", "--url", "https://posts.example.org/")
	require.Equal(t, "shop", shop.EndpointID)
	require.True(t, strings.HasPrefix(shop.Curl, "curl -sS https://posts.example.org/hooks/push -H 'Authorization: Bearer "+shop.Secret+"'"), shop.Curl)
	require.Equal(t, 202, h.Push(d, shop.Secret, house.Post("text", "From the shop")).Status)

	rotated := endpoint(t, h, "rotate", "shop")
	require.Equal(t, "shop-2", rotated.EndpointID)
	require.NotEqual(t, shop.Secret, rotated.Secret)
	for n, secret := range []string{shop.Secret, rotated.Secret} {
		require.Equal(t, 202, h.Push(d, secret, house.Post("text", fmt.Sprint("While both live ", n))).Status)
	}
	ok(t, h, "endpoint", "disable", "shop", because)
	require.Equal(t, 401, h.Push(d, shop.Secret, house.Post("text", "Too late")).Status)
	require.Equal(t, 202, h.Push(d, rotated.Secret, house.Post("text", "In time")).Status)

	require.Contains(t, ok(t, h, "endpoint", "set", "shop-2", "--rps", "2", "--max-bytes", "100", because), "ingress_rps")
	require.Equal(t, 413, h.Push(d, rotated.Secret, house.Post("text", strings.Repeat("x", 100))).Status)
	require.Contains(t, ok(t, h, "endpoint", "list"), "shop-2")
	shown := ok(t, h, "endpoint", "show", "shop-2")
	require.Contains(t, shown, `"payload_rejected":1`)
	for _, secret := range []string{shop.Secret, rotated.Secret} {
		require.NotContains(t, shown+ok(t, h, "endpoint", "list", "--json")+d.Log(), secret)
	}
	require.Equal(t, []string{"put_endpoint", "rotate_endpoint", "disable_endpoint", "put_endpoint"}, pgtest.Column[string](h.DB, `select action from autopost.admin_audit_log order by seq`))

	own := h.RunOn("a-secret-of-my-own\n", "endpoint", "add", "mine", "--secret-file", "-", because)
	require.Zero(t, own.Code, own.Stderr)
	require.NotContains(t, own.Stdout+own.Stderr, "a-secret-of-my-own")
	require.Equal(t, 202, h.Push(d, "a-secret-of-my-own", house.Post("text", "Mine")).Status)

	for says, args := range map[string][]string{
		"source_id does not fit": {"add", "feed", "--kind", "pull_source"},
		"there is no source":     {"add", "feed", "--source", "nowhere"},
		"needs a flag":           {"set", "shop-2"},
		"meta is no object":      {"set", "shop-2", "--meta", "[]"},
		"--keep is for signing":  {"rotate", "shop-2", "--keep", "1h"},
	} {
		result := h.Run(nil, append([]string{"endpoint"}, append(args, because)...)...)
		require.Equal(t, 2, result.Code, args)
		require.Contains(t, result.Stderr, says)
	}
	for says, args := range map[string][]string{
		"there is an endpoint":      {"add", "shop-2"},
		"it is so already":          {"disable", "shop"},
		"there is no such endpoint": {"rotate", "nowhere"},
		"there is no endpoint":      {"set", "nowhere", "--rps", "1"},
	} {
		result := h.Run(nil, append([]string{"endpoint"}, append(args, because)...)...)
		require.Equal(t, 1, result.Code, args)
		require.Contains(t, result.Stderr, says)
	}
	h.Verified()
}

// What a body would do is told beforehand, and nothing is done.
func TestEndpointTriesABody(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	ok(t, h, "endpoint", "set", "cms", "--max-bytes", "200", because)
	planned := h.RunOn(`[{"text": "Would it?"}, {"text": "x\u0000"}]`, "endpoint", "test", "cms")
	require.Equal(t, 1, planned.Code)
	require.Contains(t, planned.Stdout, "2 of 2 channels would get it")
	require.Contains(t, planned.Stderr, "post 2: text contains the NUL character")
	for body, says := range map[string]string{
		`{"text"`:                         "not JSON",
		house.Post("colour", "red"):       "text",
		strings.Repeat(" ", 201):          "takes up to 200",
		`[` + strings.Repeat("1,", 60):    "not JSON",
		`{"text":"ok","scheduled_for":7}`: "scheduled_for",
	} {
		result := h.RunOn(body, "endpoint", "test", "cms")
		require.Equal(t, 1, result.Code, body)
		require.Contains(t, result.Stderr, says)
	}
	require.Equal(t, 0, pgtest.Value[int](h.DB, `select count(*)::int from autopost.ingest_runs`))
}

const (
	firstKey  = "whsec_Zmlyc3QtY2FuYXJ5LXNpZ25pbmcta2V5"
	secondKey = "whsec_c2Vjb25kLWNhbmFyeS1zaWduaW5nLWtleQ=="
)

// signedHouse takes signed requests at news/signed; its keys are in the environment.
func signedHouse(t *testing.T) (h *house.House, keys []string) {
	h, _, _ = newsroom(t)
	keys = []string{"HOUSE_FIRST_KEY=" + firstKey, "HOUSE_SECOND_KEY=" + secondKey}
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values
		('news', 'first', 'webhook', 'env:HOUSE_FIRST_KEY'), ('news', 'second', 'webhook', 'env:HOUSE_SECOND_KEY')`)
	ok(t, h, "endpoint", "add", "signed", "--signing-ref", "first", "--rps", "1000", because)
	return h, keys
}

func signed(t *testing.T, h *house.House, d *house.Daemon, s house.Signed) house.Answer {
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
	h, keys := signedHouse(t)
	first, second := h.Serve(keys...), h.Serve(keys...)
	body := house.Post("text", "Signed")
	answer := signed(t, h, first, house.Signed{ID: "msg-1", Key: firstKey, Body: body})
	require.Equal(t, 202, answer.Status, answer.Body)
	again := signed(t, h, second, house.Signed{ID: "msg-1", Key: firstKey, Body: body})
	require.Equal(t, 200, again.Status)
	require.Equal(t, answer.Text("message_id"), again.Text("message_id"))

	const twins = 20
	var group sync.WaitGroup
	statuses := make([]int, twins)
	for n := range twins {
		group.Go(func() {
			d := []*house.Daemon{first, second}[n%2]
			twin, err := h.TrySigned(d.URL, house.Signed{Path: "news/signed", ID: "msg-2", Key: firstKey, At: time.Now(), Body: house.Post("text", fmt.Sprint("Twin ", n))})
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

	for says, s := range map[string]house.Signed{
		"clock-skew":         {ID: "msg-3", Key: firstKey, Body: body, At: time.Now().Add(-10 * time.Minute)},
		"signature-mismatch": {ID: "msg-3", Key: secondKey, Body: body},
	} {
		refused := signed(t, h, first, s)
		require.Equal(t, 401, refused.Status)
		require.Equal(t, "urn:autopost:problem:"+says, refused.Text("type"))
	}
	for _, path := range []string{"news/nowhere", "nowhere/signed", "news/cms"} {
		refused := signed(t, h, first, house.Signed{Path: path, ID: "msg-3", Key: firstKey, Body: body})
		require.Equal(t, signed(t, h, first, house.Signed{ID: "msg-3", Key: secondKey, Body: body}).Body, refused.Body, path)
	}
	h.Drained("news")
	require.Len(t, h.Accepted(), 4, "two posts to two channels")
	require.NotContains(t, first.Log(), firstKey)
	h.Verified()
}

// Two keys live while they are exchanged; a key that leaked ends at once.
func TestSigningKeysAreExchanged(t *testing.T) {
	t.Parallel()
	h, keys := signedHouse(t)
	d := h.Serve(keys...)
	status := func(key string) int {
		return signed(t, h, d, house.Signed{ID: fmt.Sprint("msg-", time.Now().UnixNano()), Key: key, Body: house.Post("text", fmt.Sprint(time.Now().UnixNano()))}).Status
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
	require.Contains(t, judged.Stderr, "no signature is that of this body of 13 bytes")
}

// A hundred senders at once are taken or told to wait, and nothing else; what is
// refused is counted exactly, and leaves no row each.
func TestHundredSendersAtOnce(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	h.Exec(`update autopost.workspace_endpoints set ingress_rps = 40`)
	d := h.Serve()
	const senders, each = 100, 3
	var group sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for n := range senders {
		group.Go(func() {
			for m := range each {
				answer, err := h.TryPush(d.URL, "secret-cms", house.Post("text", fmt.Sprintf("Sender %d, post %d", n, m)))
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
	require.Less(t, dropped, 30, "five a second, and one for the rest")
	require.LessOrEqual(t, events(h, "ingress_rate_limited"), dropped)
	h.Drained("news")
	require.Len(t, h.Accepted(), 2*statuses[202])
	h.Verified()
}
