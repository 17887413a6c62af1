package credential_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/twitter"
	"autopost/internal/adapter/youtube"
	"autopost/internal/credential"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/pgtest"
	"autopost/internal/posttest"
	"autopost/internal/secret"
	simx "autopost/internal/sim/twitter"
	"autopost/internal/sim/world"
	simyt "autopost/internal/sim/youtube"
)

// store introduces pg to the package, as the program does.
type store struct{ *pg.Store }

func (s store) GetCredential(ctx context.Context, workspace, authRef string) (*credential.Bound, error) {
	c, err := s.Store.GetCredential(ctx, workspace, authRef)
	if err != nil || c == nil {
		return nil, err
	}
	return &credential.Bound{
		Platform: c.Platform, SecretRef: c.SecretRef, LastVersion: c.LastVersion, Stale: c.Stale, Sealed: (*credential.Row)(c.Sealed),
	}, nil
}

func (s store) BeginRefresh(ctx context.Context, workspace string, use credential.InUse, refused *autopost.Error) (credential.Lease, error) {
	l, err := s.Store.BeginRefresh(ctx, workspace, pg.SecretInUse(use), refused)
	return credential.Lease(l), err
}

func (s store) FailRefresh(ctx context.Context, workspace string, use credential.InUse, token string, failure autopost.Error) error {
	return s.Store.FailRefresh(ctx, workspace, pg.SecretInUse(use), token, failure)
}

func (s store) FinishRefresh(ctx context.Context, workspace, authRef string, sealed credential.Row, validFor time.Duration) (bool, error) {
	return s.Store.FinishRefresh(ctx, workspace, authRef, pg.SealedSecret(sealed), validFor)
}

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

// house is a database, simulated platforms, and any number of daemons' vaults.
type house struct {
	*pgtest.DB
	t     *testing.T
	world *world.World
	host  string
	logs  *logs
	dir   string
}

const clientSecret = "canary-client-secret/+ä"

func open(t *testing.T) *house {
	t.Helper()
	h := &house{DB: pgtest.New(t), t: t, world: world.New(world.Options{}), logs: &logs{}, dir: t.TempDir()}
	server := httptest.NewServer(h.world)
	t.Cleanup(server.Close)
	h.host = server.URL
	posttest.Workspace(h.DB, "w")
	require.NoError(t, h.world.X.AddApp(simx.App{Name: "app", ClientID: "client", ClientSecret: clientSecret}))
	require.NoError(t, h.world.X.AddUser(simx.User{ID: "42", Username: "nyx"}))
	require.NoError(t, h.world.YouTube.AddProject(simyt.Project{ID: "p", ClientID: "client", ClientSecret: clientSecret}))
	require.NoError(t, h.world.YouTube.AddChannel(simyt.Channel{ID: "UCdemo-channel"}))
	return h
}

func (h *house) keyFile() string { return filepath.Join(h.dir, "master.key") }

// vault is one daemon's. wrap may stand between it and the database; nil is none.
func (h *house) vault(wrap func(credential.Refreshes) credential.Refreshes) *credential.Vault {
	h.t.Helper()
	s, err := pg.Open(h.t.Context(), pg.Options{URL: h.URL("engine")})
	require.NoError(h.t, err)
	h.t.Cleanup(s.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(h.t, err)
	h.t.Cleanup(client.CloseIdleConnections)
	var refreshes credential.Refreshes = store{s}
	if wrap != nil {
		refreshes = wrap(refreshes)
	}
	return credential.New(credential.Config{
		Bindings: store{s}, Refreshes: refreshes, Ring: secret.NewKeyring(h.keyFile()), MayMakeKey: true,
		Refreshers: map[autopost.Platform]autopost.Refresher{
			autopost.X:       twitter.NewRefresher(h.host+"/x", client),
			autopost.YouTube: youtube.NewRefresher(h.host+"/google/token", client),
		},
		Log: slog.New(slog.NewJSONHandler(h.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// x is the secret of an account of X, as an object.
func (h *house) x() map[string]string {
	h.t.Helper()
	access, refresh, err := h.world.X.GrantOAuth2("app", "42", simx.AllScopes)
	require.NoError(h.t, err)
	return map[string]string{"client_id": "client", "client_secret": clientSecret, "access_token": access, "refresh_token": refresh}
}

func (h *house) google() map[string]string {
	h.t.Helper()
	refresh, err := h.world.YouTube.Grant("p", "UCdemo-channel", simyt.ScopeAll)
	require.NoError(h.t, err)
	return map[string]string{"client_id": "client", "client_secret": clientSecret, "refresh_token": refresh}
}

// bind keeps a first secret in a file and binds the credential, with a channel, to it.
func (h *house) bind(platform autopost.Platform, first map[string]string) {
	h.t.Helper()
	posttest.Channel(h.DB, "w", string(platform), posttest.Platform(platform), posttest.Group(string(platform)))
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', $1, $1, $2)`,
		string(platform), "file:"+h.put(platform, first))
}

func (h *house) put(platform autopost.Platform, first map[string]string) (path string) {
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

// asked counts the requests for tokens that arrived at a platform.
func (h *house) asked(platform string) int {
	n := 0
	for _, entry := range h.world.Log.Entries() {
		if entry.Platform == platform && (entry.Method == "POST /2/oauth2/token" || entry.Method == "POST /token") {
			n++
		}
	}
	return n
}

// paused says whether the channel of a platform waits for its credential.
func (h *house) paused(platform autopost.Platform) bool {
	return pgtest.Value[bool](h.DB, `select c.auth_held and c.paused_until > now() from autopost.channels c where c.channel_id = $1`, string(platform))
}

// expireLease is the time that passes after a daemon has died.
func (h *house) expireLease() {
	h.Exec(`update autopost.credential_health set lease_until = now() - interval '1 second' where lease_token is not null`)
}

// of is a delivery of the credential of that name, which is its platform's.
func of(authRef string) autopost.Delivery {
	return autopost.Delivery{WorkspaceID: "w", AuthRef: authRef, Platform: autopost.Platform(authRef)}
}

var unauthorized = autopost.Error{Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: "x_unauthorized", Known: true}
