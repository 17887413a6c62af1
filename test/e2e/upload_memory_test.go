package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
	"autopost/internal/sim"
	"autopost/internal/sim/youtube"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

const mib = 1 << 20

// shelve puts a movie of a size into the origin of a workspace, and returns its name there and its file.
func shelve(t *testing.T, h *harness.Harness, workspace string, size int64) (ref, file string) {
	t.Helper()
	bucket, err := media.OpenStore(t.Context(), "file://"+h.Folder("data/media"))
	require.NoError(t, err)
	defer func() { require.NoError(t, bucket.Close()) }()
	stored, err := bucket.Put(t.Context(), &movie{size: size}, autopost.MediaVideo, media.Limits{VideoBytes: size})
	require.NoError(t, err)
	h.Exec(`insert into autopost.settings (key, value, meaning) values ('max_media_bytes_video', to_jsonb($1::bigint), '') on conflict (key) do update set value = excluded.value`, size)
	answer := h.JSON(`select autopost.put_media_origin($1, $2, $3, 'video/mp4', $4, 'video', 0, 0)`, workspace, stored.BlobRef, stored.OriginURL, size)
	require.Equal(t, true, answer["applied"], answer)
	digest := strings.TrimPrefix(stored.BlobRef, "sha256:")
	return stored.BlobRef, h.Folder("data/media/sha256/" + digest[:2] + "/" + digest[2:4] + "/" + digest)
}

// stays requires that the memory of a daemon stays below a limit, and logs its size.
func stays(t *testing.T, what string, d *harness.Daemon, watched *harness.Memory, limit int64) {
	t.Helper()
	own := watched.End()
	most, program := residence(t, d.PID())
	t.Logf("%s: resident at most %.1f MiB, of which %.1f MiB are pages of the program; its own at most %.1f MiB; the limit is %d MiB",
		what, float64(most)/mib, float64(program)/mib, float64(own)/mib, limit/mib)
	require.Less(t, most, limit, "%s: bytes resident at once", what)
}

// peer is the time of curl for the same content and address; 0 without curl.
func peer(t *testing.T, args ...string) time.Duration {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("NOT COMPARED: curl is not installed")
		return 0
	}
	began := time.Now()
	out, err := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "--fail-with-body"}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return time.Since(began)
}

// toYouTube gives curl the address of a session of its own.
func toYouTube(t *testing.T, h *harness.Harness, file string, size int64) []string {
	t.Helper()
	text, err := os.ReadFile(h.Folder("news.shows.json"))
	require.NoError(t, err)
	var grant map[string]string
	require.NoError(t, json.Unmarshal(text, &grant))
	token := asked(t, http.MethodPost, h.WorldURL+"/google/token", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, url.Values{
		"grant_type": {"refresh_token"}, "client_id": {grant["client_id"]}, "client_secret": {grant["client_secret"]}, "refresh_token": {grant["refresh_token"]},
	}.Encode())
	var access struct {
		Token string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal(token.body, &access))
	authorization := "Bearer " + access.Token
	session := asked(t, http.MethodPost, h.WorldURL+"/youtube/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status", map[string]string{
		"Authorization": authorization, "Content-Type": "application/json", "X-Upload-Content-Type": "video/mp4", "X-Upload-Content-Length": strconv.FormatInt(size, 10),
	}, `{"snippet":{"title":"by curl"},"status":{"privacyStatus":"public"}}`)
	return []string{"-T", file, "-H", "Authorization: " + authorization, "-H", "Content-Type: video/mp4", session.header.Get("Location")}
}

// toMAX gives curl the address of a slot.
func toMAX(t *testing.T, h *harness.Harness, file, kind string) []string {
	t.Helper()
	slot := asked(t, http.MethodPost, h.WorldURL+"/max/uploads?type="+kind, map[string]string{"Authorization": "canary-max-token-f9LHod"}, "")
	var to struct{ URL string }
	require.NoError(t, json.Unmarshal(slot.body, &to))
	return []string{"-F", "data=@" + file + ";filename=film.mp4;type=video/mp4", to.URL}
}

type heard struct {
	header http.Header
	body   []byte
}

func asked(t *testing.T, method, address string, header map[string]string, body string) heard {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", raw)
	return heard{response.Header, raw}
}

// A large video goes from the origin to YouTube and to MAX while the daemon stays
// small, and about as fast as curl sends the same file to the same address. Its full
// size, under AUTOPOST_LONG, is 2 GiB.
func TestALargeVideoGoesOutInLittleMemory(t *testing.T) {
	t.Parallel()
	size, rounds := int64(160*mib), 1
	if pgtest.Long() {
		size, rounds = 2<<30, 3
	}
	h, _ := studio(t)
	h.World.YouTube.SetQuotas(youtube.Quotas{})
	h.Channel("news", harness.Channel{ID: "on-max", Platform: harness.MAX})
	ref, file := shelve(t, h, "news", size)
	d := h.Serve("MAX_MEDIA_BYTES_VIDEO="+strconv.FormatInt(size, 10), "ADAPTER_TIMEOUT_MS=280000")
	watched := harness.WatchMemory(d.PID())
	ratios := map[string][]float64{}
	for round := range rounds {
		for channel, by := range map[string]struct {
			kind string
			curl func() []string
		}{
			"shows":  {"video", func() []string { return toYouTube(t, h, file, size) }},
			"on-max": {"file", func() []string { return toMAX(t, h, file, "file") }},
		} {
			ours := func() time.Duration {
				h.Exec(`update autopost.media_blobs set file_id = null`)
				began := time.Now()
				answer := h.Push(d, "secret-cms", harness.Post("text", fmt.Sprintf("%s, take %d", channel, round), "media", []any{map[string]any{"type": by.kind, "blob_ref": ref}},
					"routing", map[string]any{"include_channels": []string{channel}}))
				require.Equal(t, "enqueued", answer.Text("status"), answer.Body)
				h.UntilTrue(`select count(*) filter (where status = 'sent') = $2 from autopost.deliveries where channel_id = $1`, channel, round+1)
				return time.Since(began)
			}
			theirs := func() time.Duration { return peer(t, by.curl()...) }
			var daemon, curl time.Duration
			if round%2 == 0 {
				daemon, curl = ours(), theirs()
			} else {
				curl, daemon = theirs(), ours()
			}
			ratios[channel] = append(ratios[channel], curl.Seconds()/daemon.Seconds())
			t.Logf("%s: %d MiB in %s by the daemon, in %s by curl: %.2f of its speed", channel, size/mib, daemon.Round(time.Millisecond), curl.Round(time.Millisecond), curl.Seconds()/daemon.Seconds())
		}
	}
	stays(t, "one at a time", d, watched, memoryLimit)
	for channel, of := range ratios {
		slices.Sort(of)
		t.Logf("%s: %.2f of curl's speed, the median of %d", channel, of[len(of)/2], len(of))
	}
	arrived := 0
	for _, e := range h.World.Log.Entries() {
		for _, m := range e.Media {
			if m.Uploaded && e.Accepted {
				require.Equal(t, ref, "sha256:"+m.Digest, "the very bytes")
				arrived++
			}
		}
	}
	require.GreaterOrEqual(t, arrived, 2*rounds)
	require.Zero(t, d.Stop())
}

// Many uploads run at the same time, each to its own bot, in little memory. With AUTOPOST_LONG
// there are 200 of 50 MiB.
func TestManyUploadsAtOnceInLittleMemory(t *testing.T) {
	t.Parallel()
	count, size, limit := 32, int64(4*mib), int64(96*mib)
	if pgtest.Long() {
		count, size, limit = 200, 50*mib, 256*mib
	}
	h, _, _ := newsroom(t)
	ref, _ := shelve(t, h, "news", size)
	extra := []string{"MAX_MEDIA_BYTES_VIDEO=" + strconv.FormatInt(size, 10)}
	for n := range count {
		token := fmt.Sprintf("bot-%03d-canary-token", n)
		require.NoError(t, h.World.MAX.AddBot(token))
		extra = append(extra, fmt.Sprintf("BOT_%d=%s", n, token))
		h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('news', $1, 'max', 'env:' || $2)`, fmt.Sprintf("bot-%d", n), fmt.Sprintf("BOT_%d", n))
	}
	// A key has at most 64 running requests.
	keys := make([]string, 4)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%d", i)
		sum := sha256.Sum256([]byte(keys[i]))
		h.Exec(`select autopost.create_api_key('news', jsonb_build_object('name', $1::text, 'role', 'editor'), $2, 'ann', 'r')`, keys[i], hex.EncodeToString(sum[:]))
	}
	// The receiver thinks before it answers, as a slow platform does.
	h.Fault(sim.Fault{Platform: harness.MAX, Method: "upload video", Effect: sim.EffectSlow, DelayMS: 6000})
	d := h.Serve(extra...)
	watched := harness.WatchMemory(d.PID())
	began := time.Now()
	var callers sync.WaitGroup
	statuses := make([]string, count)
	for n := range count {
		callers.Go(func() {
			statuses[n] = handOver(t, d.URL, keys[n%len(keys)], fmt.Sprintf(`{"platform": "max", "auth_ref": "bot-%d", "blob_ref": %q, "kind": "video", "reason": "r"}`, n, ref))
		})
	}
	callers.Wait()
	took := time.Since(began)
	require.Equal(t, slices.Repeat([]string{"200 OK"}, count), statuses)
	uploads := h.World.Log.Entries(sim.Filter{Platform: harness.MAX, Method: "upload video"})
	require.Len(t, uploads, count)
	for _, e := range uploads {
		require.Equal(t, ref, "sha256:"+e.Media[0].Digest)
	}
	t.Logf("%d uploads of %d MiB in %s (%.0f MB/s), %d at the same time", count, size/mib, took.Round(time.Millisecond), float64(int64(count)*size)/1e6/took.Seconds(), together(uploads))
	require.Equal(t, count, together(uploads), "all running at once")
	stays(t, "many at once", d, watched, limit)
	require.Zero(t, d.Stop())
}

// handOver uploads a medium to a platform by the API, and returns the status.
func handOver(t *testing.T, daemon, key, body string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, daemon+"/api/v1/media/proxy", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	said, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.Status + string(said)
	}
	return response.Status
}

// together returns the largest number of exchanges that ran at the same time.
func together(entries []sim.Entry) int {
	most := 0
	for _, at := range entries {
		under := 0
		for _, e := range entries {
			if !e.Start.After(at.Start) && (e.End.IsZero() || e.End.After(at.Start)) {
				under++
			}
		}
		most = max(most, under)
	}
	return most
}
