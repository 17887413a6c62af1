package harness

import (
	"cmp"
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

	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/platforms"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/twitter"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
	"autopost/test/netfault"
)

// The platforms that a Channel may name.
const (
	Telegram = telegram.Platform
	MAX      = maxmessenger.Platform
	X        = twitter.Platform
)

// Secrets of the simulated platforms. They may appear in requests only.
const (
	telegramToken = "7001001:AAcanaryTelegramToken"
	maxToken      = "canary-max-token-f9LHod"
	xSecret       = "canary-x-consumer-secret"
	xTokenSecret  = "canary-x-token-secret"
)

// XAccount is the account on X of all its channels.
const XAccount = "4200001"

// Harness is one installation. Call its methods on the goroutine of the test unless they say otherwise.
type Harness struct {
	*pgtest.DB
	// World serves the simulated platforms: their request log and their faults.
	World *platforms.Server
	// WorldURL is the address of World.
	WorldURL string

	t        testing.TB
	binary   string
	database string
	dir      string
	chats    int64
	// clockAhead is how far a test put the clock of the database forward; see ClockWasAhead.
	clockAhead time.Duration
	// secrets may appear in requests only.
	secrets []string
}

// Option changes the installation that New makes.
type Option func(*settings)

type settings struct {
	world     platforms.Options
	role      string
	binary    func() (string, error)
	ownServer bool
	pool      int
}

// WithOwnServer gives the installation a PostgreSQL server that the test may stop and start.
func WithOwnServer(s *settings) { s.ownServer = true }

// WithConnections sets how many database connections each program may have.
func WithConnections(n int) Option { return func(s *settings) { s.pool = n } }

// WithLogSize sets how many requests the simulators remember.
func WithLogSize(n int) Option { return func(s *settings) { s.world.LogSize = n } }

// Ordinary runs the program without failpoints. It is the default.
func Ordinary(s *settings) { s.binary = ordinary }

// WithFailpoints runs the program that stops at the failpoint in AUTOPOST_FAILPOINT.
func WithFailpoints(s *settings) { s.binary = withFailpoints }

// WithOverlay builds a program for this test: overlay is a file for go build -overlay, tags are
// its build tags.
func WithOverlay(overlay string, tags string) Option {
	return func(s *settings) {
		s.binary = func() (string, error) { return build("-overlay", overlay, "-tags", tags) }
	}
}

// AsEngine runs the programs with the rights of the role autopost_engine instead of the superuser's.
func AsEngine(s *settings) { s.role = "autopost_engine" }

// New makes a database and simulators for this test. The simulators do not limit rates: tests
// judge the rates of the program by the log. Each request of the program must be one that its platform
// describes.
func New(t testing.TB, options ...Option) *Harness {
	t.Helper()
	s := settings{world: platforms.Options{
		Telegram: telegram.Options{Limits: &telegram.Limits{}, Local: true},
		MAX:      maxmessenger.Options{Limits: &maxmessenger.Limits{}, AnyHook: true},
		X:        twitter.Options{Limits: &map[string]twitter.Limit{}},
		LogSize:  50_000,
	}, binary: ordinary, pool: 2}
	for _, option := range options {
		option(&s)
	}
	path, err := s.binary()
	require.NoError(t, err)
	database := pgtest.New
	if s.ownServer {
		database = pgtest.NewAlone
	}
	h := &Harness{DB: database(t), World: platforms.New(s.world), t: t, binary: path, dir: folder(t), secrets: []string{telegramToken, maxToken}}
	if !h.OnCluster() {
		h.planOnce()
	}
	h.database = poolOf(t, h.URL(s.role), s.pool)
	require.NoError(t, h.World.Telegram.AddBot(telegramToken))
	require.NoError(t, h.World.MAX.AddBot(maxToken))
	require.NoError(t, h.World.X.AddApp(twitter.App{Name: "harness", ConsumerKey: "harness-key", ConsumerSecret: xSecret, OwnerID: XAccount}))
	require.NoError(t, h.World.X.AddUser(twitter.User{ID: XAccount, Username: "harness"}))
	require.NoError(t, h.World.X.GrantOAuth1("harness", XAccount, "harness-token", xTokenSecret))
	server := httptest.NewServer(published.Platforms(t, h.World))
	t.Cleanup(server.Close)
	t.Cleanup(h.World.Close)
	// Kept-alive and hanging connections must not hold up the end of the test.
	t.Cleanup(server.CloseClientConnections)
	h.WorldURL = server.URL
	return h
}

// folder makes a directory for the programs of the test. If the tests run as root, a private
// PostgreSQL runs as another user, who cannot enter the directories of T.TempDir.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "autopost-harness-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o711))
	return dir
}

// planOnce lets the programs plan each statement of a connection once. By default PostgreSQL plans its first six
// executions, and that was a fifth of the processor time of the tests. The tests in db keep the default.
func (h *Harness) planOnce() {
	h.t.Helper()
	h.Exec(`do $$ begin execute format('alter database %I set plan_cache_mode = force_generic_plan', current_database()); end $$`)
}

// poolOf bounds the connections of each program. Each new connection plans all functions that it calls, and that
// was a quarter of the processor time of the tests.
func poolOf(t testing.TB, database string, size int) string {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	query := u.Query()
	query.Set("pool_max_conns", strconv.Itoa(size))
	u.RawQuery = query.Encode()
	return u.String()
}

// Folder returns the path of a name in the working directory of the programs. Their data directory is "data".
func (h *Harness) Folder(name string) string { return filepath.Join(h.dir, name) }

// File writes a file into the working directory of the programs.
func (h *Harness) File(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.Folder(name), []byte(text), 0o600))
}

// environment returns all variables of the programs. They do not inherit those of the test.
func (h *Harness) environment() []string {
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
		"TEST_TELEGRAM_TOKEN=" + telegramToken,
		"TEST_MAX_TOKEN=" + maxToken,
		`TEST_X_KEYS={"consumer_key":"harness-key","consumer_secret":"` + xSecret + `","access_token":"harness-token","access_token_secret":"` + xTokenSecret + `"}`,
	}
}

// DatabaseProxy puts a faulty line in front of the database. The variable makes a daemon use it.
func (h *Harness) DatabaseProxy() (line *netfault.Proxy, variable string) {
	h.t.Helper()
	direct, err := url.Parse(h.URL(""))
	require.NoError(h.t, err)
	query := direct.Query()
	if h.OnCluster() {
		line = netfault.Open(h.t, "tcp", direct.Host)
		direct.Host = line.Addr()
		return line, "DATABASE_URL=" + direct.String()
	}
	line = netfault.Open(h.t, "unix", fmt.Sprintf("%s/.s.PGSQL.%s", query.Get("host"), query.Get("port")))
	host, port, _ := strings.Cut(line.Addr(), ":")
	query.Set("host", host)
	query.Set("port", port)
	query.Set("sslmode", "disable")
	direct.RawQuery = query.Encode()
	return line, "DATABASE_URL=" + direct.String()
}

// Workspace makes an active workspace with one credential per platform.
func (h *Harness) Workspace(id string) {
	h.t.Helper()
	h.Exec(`insert into autopost.workspaces (workspace_id) values ($1)`, id)
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values
		($1, 'telegram', 'telegram', 'env:TEST_TELEGRAM_TOKEN'), ($1, 'max', 'max', 'env:TEST_MAX_TOKEN'), ($1, 'x', 'x', 'env:TEST_X_KEYS')`, id)
}

// Endpoint makes a push endpoint whose rate limit no test reaches.
func (h *Harness) Endpoint(workspace, id, secret string) {
	h.t.Helper()
	sum := sha256.Sum256([]byte(secret))
	h.Exec(`insert into autopost.workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps) values
		($1, $2, 'webhook_push', $3, 100000)`, workspace, id, hex.EncodeToString(sum[:]))
}

// Channel describes a channel. Empty fields get the default of the database, but the rate is unlimited.
type Channel struct {
	ID       string
	Platform string
	// Group is the rate group. Default: the name of the platform.
	Group string
	// Rate is in posts per second; 0 means unlimited.
	Rate float64
	// Parallel is max_parallel. Default: 1.
	Parallel int
	// Filter is route_filter as JSON. Empty accepts every post.
	Filter string
	// Mode is send_mode. Default: mixed.
	Mode string
	// OnUnknown is on_unknown. Default: reconcile.
	OnUnknown string
}

// Channel makes a channel with SQL and its chat on the simulated platform. It returns the id of the chat.
func (h *Harness) Channel(workspace string, c Channel) string {
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
	h.Unlimited(workspace, c.Platform, cmp.Or(c.Group, c.Platform))
	h.Exec(`insert into autopost.channels
		(workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel, route_filter, send_mode, on_unknown)
		values ($1, $2, $3, $4, $3, coalesce(nullif($5, ''), $3), $6, greatest($7, 1), nullif($8, '')::jsonb,
			coalesce(nullif($9, ''), 'mixed'), coalesce(nullif($10, ''), 'reconcile'))`,
		workspace, c.ID, c.Platform, chat, c.Group, c.Rate, c.Parallel, c.Filter, c.Mode, c.OnUnknown)
	return chat
}

// GroupRate limits a rate group to rate posts per second.
func (h *Harness) GroupRate(workspace, platform, group string, rate float64) {
	h.t.Helper()
	h.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group, rate_rps) values ($1, $2, $3, $4)
		on conflict (workspace_id, platform, rate_group) do update set rate_rps = excluded.rate_rps`, workspace, platform, group, rate)
}

// Unlimited gives a rate group no limit, instead of the one that its platform publishes. A known group keeps its limit.
func (h *Harness) Unlimited(workspace, platform, group string) {
	h.t.Helper()
	h.Exec(`insert into autopost.platform_limits (workspace_id, platform, rate_group) values ($1, $2, $3) on conflict do nothing`, workspace, platform, group)
}

// Fault adds a scripted fault to the simulators.
func (h *Harness) Fault(f sim.Fault) {
	h.t.Helper()
	require.NoError(h.t, h.World.Faults.Add(f))
}

// Until waits until done returns true. It calls done on the goroutine of the test. A failure
// shows the queue.
func (h *Harness) Until(what string, done func() bool) {
	h.t.Helper()
	wait.Until(h.t, what, done, h.queue)
}

// UntilTrue waits until a query for one boolean returns true. Null counts as false.
func (h *Harness) UntilTrue(sql string, args ...any) {
	h.t.Helper()
	h.Until(sql, func() bool { return pgtest.Value[bool](h.DB, "select coalesce(("+sql+"), false)", args...) })
}

// Drained waits until no delivery of a workspace is due or in flight. A delivery that waits for
// an operator or for the far future does not count.
func (h *Harness) Drained(workspace string) {
	h.t.Helper()
	h.UntilTrue(`select not exists (
		select 1 from autopost.deliveries d
		where d.workspace_id = $1 and d.status in ('queued', 'claimed', 'sending', 'retry')
		and d.next_retry_at is distinct from 'infinity')`, workspace)
}

// Verified runs autopost verify, which must not find a violation.
func (h *Harness) Verified() {
	h.t.Helper()
	result := h.Run(nil, "verify", "--json")
	require.Zero(h.t, result.Code, "%s\n%s", result.Stdout, result.Stderr)
	require.True(h.t, json.Valid([]byte(result.Stdout)))
}

// queue describes the queue for a failed test.
func (h *Harness) queue() string {
	lines := pgtest.Column[string](h.DB, `
		select format('%s %s: %s, %s of them due; gate %s with %s in flight', d.channel_id, d.status, count(*),
			count(*) filter (where d.due_at <= now()), g.ready_at, g.inflight)
		from autopost.deliveries d
		join autopost.channel_gates g on g.workspace_id = d.workspace_id and g.channel_id = d.channel_id
		group by d.workspace_id, d.channel_id, d.status, g.ready_at, g.inflight
		order by d.workspace_id, d.channel_id, d.status`)
	return strings.Join(lines, "\n")
}

// requireNoSecrets fails the test if the output of a program contains a token.
func (h *Harness) requireNoSecrets(where, text string) {
	h.t.Helper()
	for _, secret := range h.secrets {
		if strings.Contains(text, secret) {
			h.t.Errorf("a secret is in the output of %s", where)
		}
	}
}
