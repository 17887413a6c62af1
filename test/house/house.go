package house

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/pgtest"
	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/twitter"
	"autopost/internal/sim/world"
	"autopost/test/wire"
)

// The platforms that a Channel may name.
const (
	Telegram = telegram.Platform
	MAX      = maxmessenger.Platform
	X        = twitter.Platform
)

// The tokens of the simulated bots. They must appear nowhere but in requests.
const (
	telegramToken = "7001001:AAcanaryTelegramToken"
	maxToken      = "canary-max-token-f9LHod"
	xSecret       = "canary-x-consumer-secret"
	xTokenSecret  = "canary-x-token-secret"
)

// XAccount is the account on X that all channels there post to.
const XAccount = "4200001"

// House is one whole installation. Its methods belong on the test's own
// goroutine, unless they say otherwise.
type House struct {
	*pgtest.DB
	// World is the receivers' side: their log, and the faults they are told to show.
	World *world.World
	// WorldURL is where World listens.
	WorldURL string

	t        testing.TB
	binary   string
	database string
	dir      string
	chats    int64
	// secrets must appear nowhere but in requests.
	secrets []string
}

// Option changes how a House is made.
type Option func(*settings)

type settings struct {
	world  world.Options
	role   string
	binary func() (string, error)
	alone  bool
}

// WithItsOwnServer gives the house a PostgreSQL that the test may stop and start.
func WithItsOwnServer(s *settings) { s.alone = true }

// Remembering has the receivers remember n requests, where a test sends more than usual.
func Remembering(n int) Option { return func(s *settings) { s.world.LogSize = n } }

// Ordinary runs the program as it is; that is what happens without an option.
func Ordinary(s *settings) { s.binary = ordinary }

// Armed runs the program that can be told to die at a point of internal/crash, by the
// variable AUTOPOST_CRASH.
func Armed(s *settings) { s.binary = armed }

// Overlaid runs a program in which files are replaced as the overlay says, the path of a
// file for go build -overlay; tags are those that it is built with besides.
func Overlaid(overlay string, tags string) Option {
	return func(s *settings) {
		s.binary = func() (string, error) { return build("-overlay", overlay, "-tags", tags) }
	}
}

// AsEngine runs the programs with the daemon's own lesser rights instead of the
// superuser's.
func AsEngine(s *settings) { s.role = "autopost_engine" }

// New builds the binary (once for a test process), and makes a database and a
// world for this test. The simulators keep no rates: tests judge ours by the log.
func New(t testing.TB, options ...Option) *House {
	t.Helper()
	s := settings{world: world.Options{
		Telegram: telegram.Options{Limits: &telegram.Limits{}, Local: true},
		MAX:      maxmessenger.Options{Limits: &maxmessenger.Limits{}, AnyHook: true},
		X:        twitter.Options{Limits: &map[string]twitter.Limit{}},
		LogSize:  50_000,
	}, binary: ordinary}
	for _, option := range options {
		option(&s)
	}
	path, err := s.binary()
	require.NoError(t, err)
	database := pgtest.New
	if s.alone {
		database = pgtest.NewAlone
	}
	h := &House{DB: database(t), World: world.New(s.world), t: t, binary: path, dir: folder(t), secrets: []string{telegramToken, maxToken}}
	h.database = h.URL(s.role)
	require.NoError(t, h.World.Telegram.AddBot(telegramToken))
	require.NoError(t, h.World.MAX.AddBot(maxToken))
	require.NoError(t, h.World.X.AddApp(twitter.App{Name: "house", ConsumerKey: "house-key", ConsumerSecret: xSecret, OwnerID: XAccount}))
	require.NoError(t, h.World.X.AddUser(twitter.User{ID: XAccount, Username: "house"}))
	require.NoError(t, h.World.X.GrantOAuth1("house", XAccount, "house-token", xTokenSecret))
	server := httptest.NewServer(h.World)
	t.Cleanup(server.Close)
	t.Cleanup(h.World.Close)
	// Kept-alive and hanging connections must not hold up the end of the test.
	t.Cleanup(server.CloseClientConnections)
	h.WorldURL = server.URL
	return h
}

// folder is a directory of the test's own. A private PostgreSQL runs as another
// user when the tests run as root, and must be able to pass it: T.TempDir's cannot be passed.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "autopost-house-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o711))
	return dir
}

// Folder is the path of something in the programs' working directory; their data
// directory is "data".
func (h *House) Folder(name string) string { return filepath.Join(h.dir, name) }

// File writes a file where the programs run.
func (h *House) File(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.Folder(name), []byte(text), 0o600))
}

// environment is all that the programs know: nothing of the test's own.
func (h *House) environment() []string {
	return []string{
		"DATABASE_URL=" + h.database,
		"AUTOPOST_DATA_DIR=" + h.dir + "/data",
		"AUTOPOST_MIGRATE=never",
		"AUTOPOST_LISTEN=127.0.0.1:0",
		"AUTOPOST_TELEGRAM_API_URL=" + h.WorldURL + "/telegram",
		"AUTOPOST_MAX_API_URL=" + h.WorldURL + "/max",
		"AUTOPOST_X_API_URL=" + h.WorldURL + "/x",
		"AUTOPOST_YOUTUBE_API_URL=" + h.WorldURL + "/youtube",
		"AUTOPOST_GOOGLE_TOKEN_URL=" + h.WorldURL + "/google/token",
		"AUTOPOST_OUTBOUND_ALLOW=127.0.0.1/32",
		"HOUSE_TELEGRAM_TOKEN=" + telegramToken,
		"HOUSE_MAX_TOKEN=" + maxToken,
		`HOUSE_X_KEYS={"consumer_key":"house-key","consumer_secret":"` + xSecret + `","access_token":"house-token","access_token_secret":"` + xTokenSecret + `"}`,
	}
}

// Wired puts a line in front of the database, and returns the variable that tells a daemon so.
func (h *House) Wired() (line *wire.Line, variable string) {
	h.t.Helper()
	direct, err := url.Parse(h.URL(""))
	require.NoError(h.t, err)
	query := direct.Query()
	line = wire.Open(h.t, "unix", fmt.Sprintf("%s/.s.PGSQL.%s", query.Get("host"), query.Get("port")))
	host, port, _ := strings.Cut(line.Addr(), ":")
	query.Set("host", host)
	query.Set("port", port)
	query.Set("sslmode", "disable")
	direct.RawQuery = query.Encode()
	return line, "DATABASE_URL=" + direct.String()
}

// Workspace makes an active workspace with a credential for each platform.
func (h *House) Workspace(id string) {
	h.t.Helper()
	h.Exec(`insert into autopost.workspaces (workspace_id) values ($1)`, id)
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values
		($1, 'telegram', 'telegram', 'env:HOUSE_TELEGRAM_TOKEN'), ($1, 'max', 'max', 'env:HOUSE_MAX_TOKEN'), ($1, 'x', 'x', 'env:HOUSE_X_KEYS')`, id)
}

// Endpoint makes a push endpoint that takes far more posts a second than a test sends.
func (h *House) Endpoint(workspace, id, secret string) {
	h.t.Helper()
	sum := sha256.Sum256([]byte(secret))
	h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps) values
		($1, $2, 'webhook_push', $3, 100000)`, workspace, id, hex.EncodeToString(sum[:]))
}

// Channel is what a test wants of a channel; what is left out is the database's
// default, except that there is no limit of rate.
type Channel struct {
	ID       string
	Platform string
	// Group is the rate group, the platform's name when empty.
	Group string
	// Rate is in posts a second; 0 is no limit.
	Rate float64
	// Parallel is 1 when 0.
	Parallel int
	// Filter is the route_filter as JSON; empty lets everything through.
	Filter string
	// Mode is the send_mode, mixed when empty.
	Mode string
	// OnUnknown is reconcile when empty.
	OnUnknown string
}

// Channel makes a channel by plain SQL, and its chat on the platform's side,
// whose id it returns.
func (h *House) Channel(workspace string, c Channel) string {
	h.t.Helper()
	h.chats++
	id := -1_000_000_000_000 - h.chats
	chat := strconv.FormatInt(id, 10)
	switch c.Platform {
	case X:
		chat = XAccount
	case MAX:
		id = -70_000_000 - h.chats
		chat = strconv.FormatInt(id, 10)
		h.World.MAX.AddChat(maxmessenger.Chat{ID: id, Title: c.ID})
	default:
		h.World.Telegram.AddChat(telegram.Chat{ID: id, Title: c.ID})
	}
	h.Exec(`insert into autopost.channels
		(workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel, route_filter, send_mode, on_unknown)
		values ($1, $2, $3, $4, $3, coalesce(nullif($5, ''), $3), $6, greatest($7, 1), nullif($8, '')::jsonb,
			coalesce(nullif($9, ''), 'mixed'), coalesce(nullif($10, ''), 'reconcile'))`,
		workspace, c.ID, c.Platform, chat, c.Group, c.Rate, c.Parallel, c.Filter, c.Mode, c.OnUnknown)
	return chat
}

// GroupRate limits a rate group, in posts a second.
func (h *House) GroupRate(workspace, platform, group string, rate float64) {
	h.t.Helper()
	h.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ($1, $2, $3, $4)`,
		workspace, platform, group, rate)
}

// Fault tells the receivers to misbehave.
func (h *House) Fault(f sim.Fault) {
	h.t.Helper()
	require.NoError(h.t, h.World.Faults.Add(f))
}

// pollEvery is how often a wait looks again.
const pollEvery = 20 * time.Millisecond

// Until waits for done, which is asked on the test's goroutine, and fails the test
// when it does not come true in time.
func (h *House) Until(what string, within time.Duration, done func() bool) {
	h.t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			require.FailNow(h.t, "not within "+within.String()+": "+what, h.state())
		}
	}
}

// UntilTrue waits for a query of one boolean, of which null is not true.
func (h *House) UntilTrue(within time.Duration, sql string, args ...any) {
	h.t.Helper()
	h.Until(sql, within, func() bool { return pgtest.Value[bool](h.DB, "select coalesce(("+sql+"), false)", args...) })
}

// drainPatience bounds the wait for a queue to empty.
const drainPatience = 60 * time.Second

// Drained waits until nothing of a workspace is on its way any more. What is held
// until a person decides, or until the far future, counts as settled.
func (h *House) Drained(workspace string) {
	h.t.Helper()
	h.UntilTrue(drainPatience, `select not exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = $1 and d.status in ('queued', 'claimed', 'sending', 'retry')
		and d.next_retry_at is distinct from 'infinity')`, workspace)
}

// Verified runs autopost verify, which must find every invariant kept.
func (h *House) Verified() {
	h.t.Helper()
	result := h.Run(nil, "verify", "--json")
	require.Zero(h.t, result.Code, "%s\n%s", result.Stdout, result.Stderr)
	require.True(h.t, json.Valid([]byte(result.Stdout)))
}

// state tells a failed test where the queue stood.
func (h *House) state() string {
	lines := pgtest.Column[string](h.DB, `
		select format('%s %s: %s, of which due %s; gate %s with %s in flight', d.channel_id, d.status, count(*),
			count(*) filter (where d.due_at <= now()), g.ready_at, g.inflight)
		from autopost.deliveries d
		join autopost.channel_gates g on g.workspace_id = d.workspace_id and g.channel_id = d.channel_id
		group by d.workspace_id, d.channel_id, d.status, g.ready_at, g.inflight
		order by d.workspace_id, d.channel_id, d.status`)
	return strings.Join(lines, "\n")
}

// keepsSecrets fails the test when a token is in what a program printed.
func (h *House) keepsSecrets(where, text string) {
	h.t.Helper()
	for _, secret := range h.secrets {
		if strings.Contains(text, secret) {
			h.t.Errorf("a secret is in the output of %s", where)
		}
	}
}
