package credential_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/twitter"
	"autopost/internal/adapter/youtube"
	"autopost/internal/credential"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/secret"
	"autopost/internal/sim/platforms"
	simx "autopost/internal/sim/twitter"
	simyt "autopost/internal/sim/youtube"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fixture is a database, simulated platforms, and the vaults of several daemons.
type fixture struct {
	*pgtest.DB
	t     *testing.T
	world *platforms.Server
	host  string
	logs  *logs
	dir   string
}

const clientSecret = "canary-client-secret/+ä"

func open(t *testing.T) *fixture {
	t.Helper()
	h := &fixture{DB: pgtest.New(t), t: t, world: platforms.New(platforms.Options{}), logs: &logs{}, dir: t.TempDir()}
	server := httptest.NewServer(published.Platforms(t, h.world))
	t.Cleanup(server.Close)
	h.host = server.URL
	posttest.Workspace(h.DB, "w")
	require.NoError(t, h.world.X.AddApp(simx.App{Name: "app", ClientID: "client", ClientSecret: clientSecret}))
	require.NoError(t, h.world.X.AddUser(simx.User{ID: "42", Username: "nyx"}))
	require.NoError(t, h.world.YouTube.AddProject(simyt.Project{ID: "p", ClientID: "client", ClientSecret: clientSecret}))
	require.NoError(t, h.world.YouTube.AddChannel(simyt.Channel{ID: "UCdemo-channel"}))
	return h
}

func (h *fixture) keyFile() string { return filepath.Join(h.dir, "master.key") }

// vault returns one daemon's vault. wrap may replace its connection to the database; nil does not.
func (h *fixture) vault(wrap func(credential.Store) credential.Store) *credential.Vault {
	h.t.Helper()
	s, err := pg.Open(h.t.Context(), pg.Options{URL: h.URL("engine")})
	require.NoError(h.t, err)
	h.t.Cleanup(s.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(h.t, err)
	h.t.Cleanup(client.CloseIdleConnections)
	var store credential.Store = s
	if wrap != nil {
		store = wrap(store)
	}
	return credential.New(credential.Config{
		Store: store, Ring: secret.NewKeyring(h.keyFile()), MayMakeKey: true,
		Refreshers: map[autopost.Platform]autopost.Refresher{
			autopost.X:       twitter.NewRefresher(h.host+"/x", client),
			autopost.YouTube: youtube.NewRefresher(h.host+"/google/token", client),
		},
		Log: slog.New(slog.NewJSONHandler(h.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// x is the secret of an X account, as an object.
func (h *fixture) x() map[string]string {
	h.t.Helper()
	access, refresh, err := h.world.X.GrantOAuth2("app", "42", simx.AllScopes)
	require.NoError(h.t, err)
	return map[string]string{"client_id": "client", "client_secret": clientSecret, "access_token": access, "refresh_token": refresh}
}

func (h *fixture) google() map[string]string {
	h.t.Helper()
	refresh, err := h.world.YouTube.Grant("p", "UCdemo-channel", simyt.ScopeAll)
	require.NoError(h.t, err)
	return map[string]string{"client_id": "client", "client_secret": clientSecret, "refresh_token": refresh}
}

// bind stores a first secret in a file and binds the credential, with a channel, to it.
func (h *fixture) bind(platform autopost.Platform, first map[string]string) {
	h.t.Helper()
	posttest.Channel(h.DB, "w", string(platform), posttest.Platform(platform), posttest.Group(string(platform)))
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', $1, $1, $2)`,
		string(platform), "file:"+h.put(platform, first))
}

func (h *fixture) put(platform autopost.Platform, first map[string]string) (path string) {
	h.t.Helper()
	text, err := json.Marshal(first)
	require.NoError(h.t, err)
	path = filepath.Join(h.dir, string(platform))
	require.NoError(h.t, os.WriteFile(path, text, 0o600))
	return path
}

func parts(t *testing.T, s autopost.Secret) map[string]string {
	t.Helper()
	var out map[string]string
	require.NoError(t, json.Unmarshal([]byte(s.Reveal()), &out))
	return out
}

// asked counts the token requests that a platform received.
func (h *fixture) asked(platform string) int {
	n := 0
	for _, entry := range h.world.Log.Entries() {
		if entry.Platform == platform && (entry.Method == "POST /2/oauth2/token" || entry.Method == "POST /token") {
			n++
		}
	}
	return n
}

// paused reports whether the channel of a platform waits for its credential.
func (h *fixture) paused(platform autopost.Platform) bool {
	return pgtest.Value[bool](h.DB, `select c.auth_held and c.paused_until > now() from autopost.channels c where c.channel_id = $1`, string(platform))
}

// expireLease passes the lease time of a dead daemon.
func (h *fixture) expireLease() {
	h.Exec(`update autopost.credential_health set lease_until = now() - interval '1 second' where lease_token is not null`)
}

// of returns a delivery whose credential has this name; the name is also that of its platform.
func of(authRef string) autopost.Delivery {
	return autopost.Delivery{WorkspaceID: "w", AuthRef: authRef, Platform: autopost.Platform(authRef)}
}

var unauthorized = autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "x_unauthorized", Known: true}
