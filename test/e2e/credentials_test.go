package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	simtg "autopost/internal/sim/telegram"
	simx "autopost/internal/sim/twitter"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// A bot token of this file's tests; it must not be shown.
const sealedToken = "7001002:AAcanarySealedTelegramToken"

// sealed makes a workspace whose Telegram token is kept sealed, with a channel.
func sealed(t *testing.T) (h *harness.Harness, keyFile string) {
	t.Helper()
	h = harness.New(t)
	require.NoError(t, h.World.Telegram.AddBot(sealedToken))
	h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
	h.Endpoint("acme", "in", "e2e-secret")
	h.Channel("acme", harness.Channel{ID: "news", Platform: harness.Telegram})
	keyFile = filepath.Join(t.TempDir(), "master.key")
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(sealedToken+"\n"), 0o600))
	run := h.Run([]string{"AUTOPOST_MASTER_KEY_FILE=" + keyFile}, "credential", "rewrap", "--new-key")
	require.Zero(t, run.Code, run.Stderr)
	run = h.Run([]string{"AUTOPOST_MASTER_KEY_FILE=" + keyFile}, "credential", "set", "telegram", "--platform", "telegram",
		"--from-file", file, "--reason", "the first one", "--valid-for", "1000h")
	require.Zero(t, run.Code, run.Stderr)
	require.Contains(t, run.Stdout, "sealed as version 1")
	return h, keyFile
}

func rowsOf(t *testing.T, stdout string) []map[string]any {
	t.Helper()
	return items[map[string]any](t, stdout)
}

func TestSealedCredentialSendsAndIsShownWithoutItsSecret(t *testing.T) {
	t.Parallel()
	h, keyFile := sealed(t)
	env := []string{"AUTOPOST_MASTER_KEY_FILE=" + keyFile}
	info, err := os.Stat(keyFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, "sealed:telegram", pgtest.Value[string](h.DB, `select secret_ref from autopost.credential_bindings`))

	d := h.Serve(append(env, "AUTOPOST_LOG=debug")...)
	require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", harness.Post("text", "one")).Status)
	h.Drained("acme")
	require.Len(t, h.Accepted(), 1)

	// The master key changes under a running daemon.
	run := h.Run(env, "credential", "rewrap", "--new-key", "--drop-old", "--json")
	require.Zero(t, run.Code, run.Stderr)
	require.Contains(t, run.Stdout, `"rewrapped": 1,`)
	require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", harness.Post("text", "two")).Status)
	h.Drained("acme")
	require.Len(t, h.Accepted(), 2)

	check := h.Run(env, "credential", "check", "--json")
	require.Zero(t, check.Code, check.Stderr)
	require.Equal(t, true, rowsOf(t, check.Stdout)[0]["ok"])
	require.Zero(t, h.Run(env, "channel", "check", "news").Code)
	list := h.Run(env, "credential", "list", "--json")
	row := rowsOf(t, list.Stdout)[0]
	require.Equal(t, "sealed", row["kept_in"])
	require.Equal(t, true, row["rights"].([]any)[0].(map[string]any)["may_post"])
	listed := h.Run(append(env, "COLUMNS=200"), "credential", "list").Stdout
	for _, part := range []string{" ok ", "1 of 1", "in 41 days"} {
		require.Contains(t, listed, part)
	}
	show := h.Run(env, "credential", "show", "telegram")
	require.Contains(t, show.Stdout, "sealed, version 1 sealed")

	h.World.Telegram.SetAccess(-1_000_000_000_001, simtg.AccessReadOnly)
	check = h.Run(env, "credential", "check", "telegram")
	require.Equal(t, 1, check.Code)
	require.Contains(t, check.Stdout, "grant that right")
	require.Equal(t, 1, h.Run(env, "channel", "check", "news").Code)

	// Without its key nothing is sent, nothing is lost, and everybody says what to do.
	require.NoError(t, os.Rename(keyFile, keyFile+".away"))
	doctor := h.Run(env, "doctor", "--json")
	require.Equal(t, 1, doctor.Code)
	require.Contains(t, doctor.Stdout, "restore the master key file")
	check = h.Run(env, "credential", "check")
	require.Equal(t, 1, check.Code)
	require.Contains(t, check.Stdout, "there is no master key")
	require.NoError(t, os.Rename(keyFile+".away", keyFile))

	for _, said := range []string{d.Log(), list.Stdout, show.Stdout, doctor.Stdout, check.Stdout, check.Stderr} {
		require.NotContains(t, said, "canarySealed")
	}
	h.Verified()
}

// Each remedy of the doctor is what to do, and nothing that would make it worse.
func TestTheDoctorsRemedies(t *testing.T) {
	t.Parallel()
	h, keyFile := sealed(t)
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values
		('acme', 'far', 'max', 'env:FAR_TOKEN'), ('acme', 'unset', 'telegram', 'env:NOWHERE_SET')`)
	require.NoError(t, os.Chmod(keyFile, 0o644))
	ill := diagnose(t, h, "AUTOPOST_MASTER_KEY_FILE="+keyFile, "AUTOPOST_MAX_API_URL=http://127.0.0.1:1", "FAR_TOKEN=far-away")
	for check, want := range map[string][2]string{
		"master key":               {"can be read by others", "chmod 600 " + keyFile},
		"credential acme/telegram": {"chmod 600", "the check master key"},
		"credential acme/far":      {"net_connect", "AUTOPOST_MAX_API_URL"},
		"credential acme/unset":    {`"NOWHERE_SET" is not set`, "autopost credential set unset"},
	} {
		require.False(t, ill[check].OK, check)
		require.Contains(t, ill[check].Found, want[0])
		require.Contains(t, ill[check].Remedy, want[1])
		require.NotContains(t, ill[check].Remedy, "rewrap", check)
	}
}

func TestSetRefusesASecretOfAnotherForm(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
	for _, c := range []struct {
		stdin string
		args  []string
		says  string
	}{
		{"canary", []string{"bot", "--platform", "telegram", "--reason", "r"}, "bot token must have the form"},
		{"{}", []string{"tube", "--platform", "youtube", "--reason", "r"}, "client_id is missing"},
		{"", []string{"bot", "--platform", "max", "--reason", "r"}, "secret is empty"},
		{"canary", []string{"bot", "--reason", "r"}, "--platform must be set"},
		{"canary", []string{"bot", "--platform", "max", "--reason", "r", "--from-file", "/nowhere"}, "/nowhere"},
		{"canary", []string{"bot", "--platform", "foo", "--reason", "r"}, "use http, max, postgres, smtp, telegram, webhook, x, youtube"},
	} {
		run := h.RunWithInput(c.stdin, append([]string{"credential", "set"}, c.args...)...)
		require.Equal(t, 2, run.Code, "%v: %s", c.args, run.Stderr)
		require.Contains(t, run.Stderr, c.says)
		require.NotContains(t, run.Stderr, "canary")
	}
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.credential_bindings`))
	data := t.TempDir()
	set := func(platform string, more ...string) harness.Result {
		args := append([]string{"credential", "set", "bot", "--platform", platform, "--reason", "r"}, more...)
		return h.RunInteractive([]string{"AUTOPOST_DATA_DIR=" + data}, "canary-max-token", func(string) {}, args...)
	}
	dry := set("max", "--dry-run")
	require.Zero(t, dry.Code, dry.Stderr)
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.credential_bindings`))
	require.NoFileExists(t, filepath.Join(data, "master.key"))
	done := set("max")
	require.Zero(t, done.Code, done.Stderr)
	info, err := os.Stat(filepath.Join(data, "master.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	other := set("http")
	require.Equal(t, 2, other.Code)
	require.Contains(t, other.Stderr, "has platform max")
}

func s256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// tokens is a token endpoint that gives a pair for a code, if its verifier fits the challenge.
func tokens(t *testing.T, challenge func() string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.URL.Path != "/2/oauth2/token" || r.PostForm.Get("grant_type") != "authorization_code" || r.PostForm.Get("code") != "canary-code" ||
			s256(r.PostForm.Get("code_verifier")) != challenge() {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_request","error_description":"Value passed for the authorization code was invalid."}`)
			return
		}
		_, _ = io.WriteString(w, `{"token_type":"bearer","expires_in":7200,"access_token":"canary-access","refresh_token":"canary-refresh"}`)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestLinkAnAccountFromTheCommandLine(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
	var mu sync.Mutex
	var challenge string
	platform := tokens(t, func() string { mu.Lock(); defer mu.Unlock(); return challenge })
	var answers []string
	browser := func(code string) func(string) {
		return func(line string) {
			address, err := url.Parse(strings.TrimSpace(line))
			if err != nil || address.Path != "/i/oauth2/authorize" {
				return
			}
			asked := address.Query()
			mu.Lock()
			challenge = asked.Get("code_challenge")
			mu.Unlock()
			for _, state := range []string{"somebody-elses", asked.Get("state")} {
				answer, err := http.Get(asked.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {state}}.Encode())
				if err != nil {
					t.Error(err)
					return
				}
				_ = answer.Body.Close()
				mu.Lock()
				answers = append(answers, fmt.Sprint(answer.StatusCode))
				mu.Unlock()
			}
		}
	}
	env := []string{"AUTOPOST_X_API_URL=" + platform.URL}
	link := func(code string) harness.Result {
		return h.RunInteractive(env, `{"client_id": "client", "client_secret": "canary-hush"}`, browser(code),
			"credential", "link", "shop", "--platform", "x", "--listen", "127.0.0.1:0", "--timeout", "240s", "--reason", "the shop's account")
	}
	wrong := link("canary-other-code")
	require.Equal(t, 1, wrong.Code)
	require.Contains(t, wrong.Stderr, "refused the code")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.sealed_secrets`))
	done := link("canary-code")
	require.Zero(t, done.Code, done.Stderr)
	require.Contains(t, done.Stdout, "credential shop is sealed as version 1")
	require.Equal(t, []string{"400", "200", "400", "200"}, answers, "another state is not listened to")
	for _, said := range []string{wrong.Stdout, wrong.Stderr, done.Stdout, done.Stderr} {
		require.NotContains(t, said, "canary")
	}
	due := pgtest.Value[time.Time](h.DB, `select next_refresh_at from autopost.credential_health where auth_ref = 'shop'`)
	require.WithinDuration(t, time.Now().Add(110*time.Minute), due, 5*time.Minute)

	refused := h.Run(nil, "credential", "link", "shop", "--same-app", "--listen", "0.0.0.0:0", "--reason", "r")
	require.Equal(t, 2, refused.Code)
	require.Contains(t, refused.Stderr, "must be a loopback address")
	require.Equal(t, 2, h.RunWithInput(`{"client_id": "a"}`, "credential", "link", "bot", "--platform", "telegram", "--reason", "r").Code)
}

// A token that the platform does not know: its channels pause, one alert says so, and a new one brings all back.
func TestRefusedCredentialIsReplacedAndLosesNothing(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	require.NoError(t, h.World.Telegram.AddBot(sealedToken))
	h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
	h.Endpoint("acme", "in", "e2e-secret")
	for _, id := range []string{"a", "b"} {
		h.Channel("acme", harness.Channel{ID: id, Platform: harness.Telegram})
	}
	set := func(token string) string {
		run := h.RunWithInput(token, "credential", "set", "telegram", "--platform", "telegram", "--reason", "e2e")
		require.Zero(t, run.Code, run.Stderr)
		return run.Stdout
	}
	set("7001003:AAcanaryTokenOfNoBot")
	d := h.Serve(rarely)
	require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", harness.Post("text", "first")).Status)
	h.UntilTrue(`select count(*) = 2 from autopost.channels c where c.auth_held and c.paused_until > now()`)
	require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", harness.Post("text", "second")).Status)
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'auth_lost'`))
	require.Equal(t, []string{"credential:telegram"}, pgtest.Column[string](h.DB, `select subject from autopost.alerts where ended_at is null`))
	list := h.Run(nil, "credential", "list", "--json")
	require.NotNil(t, rowsOf(t, list.Stdout)[0]["auth_lost_at"])
	require.Contains(t, h.Run(nil, "credential", "list").Stdout, "refused since")
	early := h.Run(nil, "credential", "relink", "telegram", "--reason", "e2e")
	require.Equal(t, 1, early.Code)
	require.Contains(t, early.Stderr, "does not accept credential")

	said := set(sealedToken)
	require.Contains(t, said, "resumed 2 waiting channels")
	require.Contains(t, said, "autopost credential requeue")
	h.Drained("acme")
	relink := h.Run(nil, "credential", "relink", "telegram", "--reason", "e2e")
	require.Zero(t, relink.Code, "%s%s", relink.Stdout, relink.Stderr)
	h.Drained("acme")
	require.Equal(t, 4, len(h.Accepted()), "both posts, in both channels")
	require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.alerts where ended_at is null`))
	require.NotContains(t, d.Log()+list.Stdout+early.Stderr+said, "canary")
	h.Verified()
}

// A channel whose credential does not exist waits, names the command, and goes on when the credential is set.
func TestAMissingCredentialHoldsTheQueueUntilItIsSet(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	require.NoError(t, h.World.Telegram.AddBot(sealedToken))
	h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
	h.Endpoint("acme", "in", "e2e-secret")
	h.Channel("acme", harness.Channel{ID: "news", Platform: harness.Telegram})
	const remedy = "autopost credential set bot --platform telegram"
	put := h.Run(nil, "channel", "set", "news", "--auth-ref", "bot", "--reason", "e2e")
	require.Zero(t, put.Code, put.Stderr)
	require.Contains(t, put.Stderr, remedy)
	require.Contains(t, h.Run(nil, "plan", "--text", "first").Stdout, "credential missing")
	doctor := diagnose(t, h)
	require.False(t, doctor["credential acme/bot"].OK)
	require.Contains(t, doctor["credential acme/bot"].Remedy, remedy)

	d := h.Serve(rarely)
	require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", harness.Post("text", "first")).Status)
	require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", harness.Post("text", "second")).Status)
	h.UntilTrue(`select count(*) = 1 from autopost.deliveries where status = 'retry' and last_error ->> 'code' = 'credential_missing'`)
	require.Contains(t, h.Run(nil, "channel", "list").Stdout, "credential bot is missing")
	id := pgtest.Value[string](h.DB, `select delivery_id::text from autopost.deliveries where status = 'retry'`)
	require.Contains(t, h.Run(nil, "why", id).Stdout, remedy)
	require.Empty(t, h.Accepted())

	set := h.RunWithInput(sealedToken, "credential", "set", "bot", "--platform", "telegram", "--reason", "e2e")
	require.Zero(t, set.Code, set.Stderr)
	h.Drained("acme")
	require.Len(t, h.Accepted(), 2)
	require.Equal(t, 2, pgtest.Value[int](h.DB, `select count(*)::int from autopost.deliveries where attempt - granted_attempts = 1`))
	require.True(t, pgtest.Value[bool](h.DB, `select enabled and error_streak = 0 and credential_missing_at is null from autopost.channels`))
	h.Verified()
}

func TestDaemonsRenewWhatExpiresOnce(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	require.NoError(t, h.World.X.AddApp(simx.App{Name: "app", ClientID: "client", ClientSecret: "canary-hush"}))
	require.NoError(t, h.World.X.AddUser(simx.User{ID: "42", Username: "nyx"}))
	access, refresh, err := h.World.X.GrantOAuth2("app", "42", simx.AllScopes)
	require.NoError(t, err)
	h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
	run := h.RunWithInput(fmt.Sprintf(`{"client_id": "client", "client_secret": "canary-hush", "access_token": %q, "refresh_token": %q}`, access, refresh),
		"credential", "set", "x", "--platform", "x", "--reason", "e2e")
	require.Zero(t, run.Code, run.Stderr)
	h.Exec(`update autopost.credential_health set valid_until = now() + interval '1 minute', next_refresh_at = now()`)
	daemons := []*harness.Daemon{h.Serve("MONITOR_INTERVAL_SECONDS=1", "AUTOPOST_LOG=debug"), h.Serve("MONITOR_INTERVAL_SECONDS=1", "AUTOPOST_LOG=debug")}
	h.UntilTrue(`select count(*) = 1 from autopost.events where action = 'auth_refreshed'`)
	h.UntilTrue(`select valid_until > now() + interval '1 hour' from autopost.credential_health`)
	asked := 0
	for _, entry := range h.World.Log.Entries() {
		if entry.Method == "POST /2/oauth2/token" {
			asked++
		}
	}
	require.Equal(t, 1, asked)
	for _, d := range daemons {
		for _, secret := range []string{"canary", access, refresh} {
			require.NotContains(t, d.Log(), secret)
		}
	}
}
