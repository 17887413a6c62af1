package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// memoryBudgets returns the table of docs/operate/memory.md: the budget of each input, in bytes.
func memoryBudgets(t *testing.T) map[string]int64 {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate/memory.md")
	require.NoError(t, err)
	budgets := map[string]int64{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| (\d+) MB \|$`).FindAllStringSubmatch(string(page), -1) {
		mb, err := strconv.ParseInt(row[2], 10, 64)
		require.NoError(t, err)
		budgets[row[1]] = mb << 20
	}
	require.NotEmpty(t, budgets)
	return budgets
}

// worst are JSON documents of about this size that need the most memory when they are parsed, with a text where a
// reader may look for one.
func worst(size int) map[string]string {
	return map[string]string{
		"many values":       `[` + strings.Repeat(`{},`, size/3) + `{}]`,
		"many fields":       `{"text": "x"` + strings.Join(numbered(size/17, `, "%07d": [1]`), "") + `}`,
		"deep":              strings.Repeat(`[`, size/2) + strings.Repeat(`]`, size/2),
		"deep in a field":   `{"text": "x", "buttons": ` + strings.Repeat(`{"a":`, size/6) + `1` + strings.Repeat(`}`, size/6) + `}`,
		"one text":          `{"text": "` + strings.Repeat(`a `, size/2) + `"}`,
		"escapes":           `{"text": "` + strings.Repeat(`\u0001`, size/6) + `"}`,
		"many media":        `{"text": "x", "media": [` + strings.Repeat(`{"type":"image","url":"http://127.0.0.1:1/a"},`, size/48) + `{}]}`,
		"many tags":         `{"text": "x", "tags": [` + strings.Repeat(`"a",`, size/4) + `"a"]}`,
		"many wrong posts":  `[` + strings.Repeat(`{"text":1},`, size/11) + `{}]`,
		"a long number":     `{"text": "x", "scheduled_for": ` + strings.Repeat(`9`, size) + `}`,
		"many links":        `{"text": "` + strings.Repeat(`a.b/c `, size/6) + `"}`,
		"markup":            `{"text": "` + strings.Repeat(`<b><i>`, size/6) + `", "parse_mode": "HTML"}`,
		"markdown":          `{"text": "` + strings.Repeat("**_", size/3) + `", "parse_mode": "Markdown"}`,
		"not ended":         `{"text": "` + strings.Repeat(`[{"a":`, size/6),
		"spaces":            strings.Repeat(" ", size),
		"escaped surrogate": `{"text": "` + strings.Repeat(`\ud800`, size/6) + `"}`,
	}
}

func numbered(n int, format string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

// liar answers instead of the simulators while it has an answer.
type liar struct {
	answer atomic.Pointer[http.HandlerFunc]
	next   http.Handler
	asked  atomic.Int64
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer := l.answer.Load(); answer != nil {
		l.asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		(*answer)(w, r)
		return
	}
	l.next.ServeHTTP(w, r)
}

// answers are the worst answers of a platform, of an account server or of a receiver.
func answers() map[string]http.HandlerFunc {
	const size = 64 << 20
	body := func(head, part string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, head)
			for range size / len(part) >> 10 {
				if _, err := io.WriteString(w, strings.Repeat(part, 1<<10)); err != nil {
					return // the client has seen enough
				}
			}
		}
	}
	return map[string]http.HandlerFunc{
		"deep":        body("", "["),
		"many values": body(`{"ok":true,"result":[`, "{},"),
		"a text":      body(`{"ok":false,"error_code":400,"description":"`, "no room "),
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			for range size >> 16 {
				_, _ = packed.Write(make([]byte, 1<<16))
			}
			_ = packed.Close()
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			for n := range 400 {
				w.Header().Set(fmt.Sprint("X-", n), strings.Repeat("h", 8<<10))
			}
			w.WriteHeader(http.StatusBadRequest)
		},
	}
}

// vast is a PNG of a few bytes that claims 100,000 by 100,000 pixels.
func vast() []byte {
	header := binary.BigEndian.AppendUint32(nil, 100_000)
	header = append(binary.BigEndian.AppendUint32(header, 100_000), 8, 6, 0, 0, 0)
	picture := []byte("\x89PNG\r\n\x1a\n")
	for _, chunk := range []struct {
		name string
		data []byte
	}{{"IHDR", header}, {"tEXt", bytes.Repeat([]byte("a"), 2<<20)}, {"IDAT", []byte("x\x9c\x03\x00\x00\x00\x00\x01")}, {"IEND", nil}} {
		picture = binary.BigEndian.AppendUint32(picture, uint32(len(chunk.data)))
		picture = append(append(picture, chunk.name...), chunk.data...)
		picture = binary.BigEndian.AppendUint32(picture, crc32.ChecksumIEEE(append([]byte(chunk.name), chunk.data...)))
	}
	return picture
}

// glutton is an installation that gets the worst small inputs.
type glutton struct {
	*harness.Harness
	t          *testing.T
	front      *liar
	bot, owner string // secrets
	daemon     *harness.Daemon
	idle       int64 // private memory of the daemon before
}

func newGlutton(t *testing.T) *glutton {
	t.Helper()
	h := harness.New(t)
	g := &glutton{Harness: h, t: t, front: &liar{next: h.World}}
	server := httptest.NewServer(g.front)
	t.Cleanup(server.Close)
	h.Workspace("news")
	h.Endpoint("news", "cms", "secret-cms")
	h.Channel("news", harness.Channel{ID: "on-telegram", Platform: harness.Telegram})
	h.Exec(`update autopost.settings set value = '1' where key = 'max_attempts'`)
	g.bot = secretIn(t, "secret", ok(t, h, "endpoint", "add", "bot", "--kind", "telegram", "--auth-ref", "telegram", because, "--json"))
	g.owner = secretIn(t, "key", ok(t, h, "apikey", "add", "--workspace", "news", "--name", "owner", "--role", "owner", "--json"))
	h.Exec(`update autopost.workspace_endpoints set max_payload_bytes = 1048576, ingress_rps = 100000`)
	g.daemon = h.Serve("AUTOPOST_TELEGRAM_API_URL="+server.URL+"/telegram", "MONITOR_INTERVAL_SECONDS=1", "ADAPTER_TIMEOUT_MS=5000")
	h.Push(g.daemon, "secret-cms", harness.Post("text", "The first post"))
	h.Drained("news")
	g.idle = harness.Anonymous(g.daemon.PID())
	return g
}

func secretIn(t *testing.T, field, answer string) string {
	t.Helper()
	found := regexp.MustCompile(`"` + field + `": ?"([^"]+)"`).FindStringSubmatch(answer)
	require.NotNil(t, found, answer)
	return found[1]
}

// send makes a request with one header. It returns the status; 0 if the connection was lost, as that of a refused request may be.
func (g *glutton) send(path, header, value, body string) int {
	request, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.daemon.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the address and the header are those of the test
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(header, value)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

// requests are the inputs that are requests, by the names of the budgets.
func (g *glutton) requests() map[string]func(body string) int {
	return map[string]func(string) int{
		"push":               func(body string) int { return g.send("/hooks/push", "Authorization", "Bearer secret-cms", body) },
		"request of the API": func(body string) int { return g.send("/api/v1/posts", "Authorization", "Bearer "+g.owner, body) },
		"update of a bot": func(body string) int {
			return g.send("/hooks/telegram", "X-Telegram-Bot-Api-Secret-Token", g.bot, body)
		},
	}
}

// sample names the inputs of make test; make test-long has all.
var sample = map[string]bool{"many values": true, "deep in a field": true, "many wrong posts": true, "many tags": true, "aliased fields": true, "many items": true, "rows": true}

// Each kind of input has a budget of memory. The daemon, or the command, takes the worst small input of each kind in it.
func TestMemoryOfEachInput(t *testing.T) {
	t.Parallel()
	budgets := memoryBudgets(t)
	g := newGlutton(t)
	most := map[string]int64{}
	judge := func(input, name string, grown int64) {
		most[input] = max(most[input], grown)
		if limit, known := budgets[input]; !known || grown > limit {
			t.Errorf("%s, %s: %d MB; the budget in docs/operate/memory.md is %d MB", input, name, grown>>20, limit>>20)
		}
	}
	within := func(input, name string, before int64, run func()) {
		watched := harness.WatchMemory(g.daemon.PID())
		run()
		judge(input, name, watched.End()-before)
	}
	// What one of the requests leaves behind counts for the next one too; not for the other inputs.
	now := func() int64 { return harness.Anonymous(g.daemon.PID()) }
	for name, body := range worst(1_000_000) {
		if !pgtest.Long() && !sample[name] {
			continue
		}
		for input, send := range g.requests() {
			within(input, name, g.idle, func() { require.NotContains(t, []int{401, 413}, send(body), "%s, %s", input, name) })
		}
	}
	within("headers of a request", "many", now(), func() {
		for n := range 50 {
			g.send("/hooks/push", "X-"+strconv.Itoa(n), strings.Repeat("h", 900<<10), "{}")
		}
	})
	for name, answer := range answers() {
		asked := g.front.asked.Load()
		g.front.answer.Store(&answer)
		within("answer of a platform", name, now(), func() {
			g.Push(g.daemon, "secret-cms", harness.Post("text", "Answered: "+name))
			g.Until("the platform is asked", func() bool { return g.front.asked.Load() > asked })
			g.UntilTrue(`select not exists (select 1 from autopost.deliveries where status = 'sending')`)
		})
		g.front.answer.Store(nil)
		g.Exec(`update autopost.channels set paused_until = null, cooldown_until = null, enabled = true`)
		g.Exec(`update autopost.platform_limits set cooldown_until = null, breaker_opened_at = null, failing_channels = '{}'`)
	}
	g.World.Files.Set("vast.png", "image/png", vast())
	within("picture", "of 100,000 by 100,000 pixels", now(), func() {
		g.Push(g.daemon, "secret-cms", harness.Post("text", "Vast", "media", []any{map[string]any{"type": "image", "url": g.WorldURL + "/files/vast.png"}}))
		g.UntilTrue(`select count(*) > 0 from autopost.submissions where status not in ('new', 'fetching', 'pending')`)
	})
	for name, c := range files() {
		if !pgtest.Long() && !sample[name] {
			continue
		}
		g.File(c.name, c.text)
		judge("file of a command", name, g.Run(nil, append(c.command, c.name, "--workspace", "news", "--dry-run", because)...).Anonymous)
	}
	t.Logf("idle %d MB; the most of each: %v", g.idle>>20, most)
}

// file is a file that a command reads.
type file struct {
	command    []string
	name, text string
}

func files() map[string]file {
	apply, feeds, rows := []string{"config", "apply"}, []string{"source", "import"}, []string{"channel", "import"}
	aliases := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for n := 1; n < 9; n++ {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", n, n, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", n-1), 9), ", "))
	}
	return map[string]file{
		"aliases":        {apply, "aliases.yaml", aliases},
		"aliased fields": {apply, "fields.yaml", aliases + "workspaces: [{workspace: news, channels: [{channel_id: c, settings: *a8}]}]\n"},
		"deep YAML":      {apply, "deep.yaml", "workspaces: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)},
		"many items":     {apply, "items.yaml", "workspaces:\n- workspace: news\n  channels:\n" + strings.Repeat("  - {}\n", 100_000)},
		"entities":       {feeds, "entities.opml", `<!DOCTYPE o [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><opml version="2.0"><body><outline text="` + strings.Repeat("&b;", 100_000) + `"/></body></opml>`},
		"outlines":       {feeds, "deep.opml", `<opml version="2.0"><body>` + strings.Repeat(`<outline>`, 100_000) + strings.Repeat(`</outline>`, 100_000) + `</body></opml>`},
		"feeds":          {feeds, "feeds.opml", `<opml version="2.0"><body>` + strings.Repeat(`<outline xmlUrl=""/>`, 50_000) + `</body></opml>`},
		"columns":        {rows, "columns.csv", strings.Repeat("a,", 500_000) + "\n" + strings.Repeat(",", 500_000) + "\n"},
		"rows":           {rows, "rows.csv", "channel_id\n" + strings.Repeat("a\n", 500_000)},
	}
}

// Many of the worst inputs arrive at once, and bad feeds are polled. The daemon stays alive and small, and still sends.
func TestManyWorstInputsAtOnce(t *testing.T) {
	t.Parallel()
	g := newGlutton(t)
	until := time.Now().Add(5 * time.Second)
	if pgtest.Long() {
		until = time.Now().Add(10 * time.Minute)
	}
	for name, document := range map[string]string{
		"empty":  `<rss version="2.0"><channel>` + strings.Repeat(`<item/>`, 480_000) + `</channel></rss>`,
		"base":   `<rss version="2.0" xml:base="http://x.example/` + strings.Repeat("a", 100<<10) + `"><channel>` + strings.Repeat(`<item><title>t</title><link>p</link></item>`, 1500) + `</channel></rss>`,
		"values": `{"version": "https://jsonfeed.org/version/1.1", "items": [` + strings.Repeat(`{},`, 2_000_000) + `{}]}`,
	} {
		g.World.Feeds.Set(name, "text/xml", []byte(document))
		g.Exec(`insert into autopost.pull_sources (workspace_id, source_id, kind, config_json)
			select 'news', $1, 'rss', jsonb_build_object('url', $2::text, 'interval_seconds', 3600, 'template', '{title}')`, name, g.WorldURL+"/feeds/"+name)
		g.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, source_id) values ('news', $1, 'pull_source', $1)`, name)
	}
	watched := harness.WatchMemory(g.daemon.PID())
	var senders sync.WaitGroup
	var sent atomic.Int64
	for range 4 {
		for _, send := range g.requests() {
			senders.Go(func() {
				for time.Now().Before(until) {
					for _, body := range worst(1_000_000) {
						send(body)
						sent.Add(1)
					}
				}
			})
		}
	}
	for time.Now().Before(until) {
		g.Exec(`update autopost.pull_cursors set next_poll_at = now() where next_poll_at > now() + interval '3 minutes'`)
		<-time.After(time.Second)
	}
	senders.Wait()
	most := watched.End()
	t.Logf("%d requests; private memory at most %d MB", sent.Load(), most>>20)
	require.Less(t, most, int64(200<<20), "docs/operate/memory.md")
	g.Push(g.daemon, "secret-cms", harness.Post("text", "Still here"))
	g.UntilTrue(`select exists (select 1 from autopost.deliveries where status = 'sent' and rendered_text = 'Still here')`)
}
