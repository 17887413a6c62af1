package twitter_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/twitter"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/twitter"
)

// refreshers returns a simulator, a refresher for it, and the secret of an account.
func refreshers(t *testing.T) (*sim.Core, *simulator.Server, adapter.TokenEndpoint, autopost.Secret) {
	t.Helper()
	core := sim.NewCore(0)
	server := simulator.New(core, simulator.Options{})
	require.NoError(t, server.AddApp(simulator.App{Name: "app", ClientID: "client", ClientSecret: "canary hush/1"}))
	require.NoError(t, server.AddUser(simulator.User{ID: "42", Username: "nyx"}))
	access, refresh, err := server.GrantOAuth2("app", "42", simulator.AllScopes)
	require.NoError(t, err)
	host := httptest.NewServer(published.Inspect(t, server, published.X(t)))
	t.Cleanup(host.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	secret, err := json.Marshal(map[string]any{
		"client_id": "client", "client_secret": "canary hush/1", "access_token": access, "refresh_token": refresh, "note": map[string]int{"kept": 1},
	})
	require.NoError(t, err)
	return core, server, twitter.NewRefresher(host.URL, client), autopost.NewSecret(string(secret))
}

func fields(t *testing.T, s autopost.Secret) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.Reveal()), &out))
	return out
}

func TestRefreshReplacesTheTokensAndKeepsTheRest(t *testing.T) {
	_, _, refresher, secret := refreshers(t)
	renewed, failure := refresher.Refresh(t.Context(), secret)
	require.Nil(t, failure)
	require.Equal(t, 2*time.Hour, renewed.ValidFor)
	before, after := fields(t, secret), fields(t, renewed.Secret)
	for _, name := range []string{"access_token", "refresh_token"} {
		require.NotEmpty(t, after[name])
		require.NotEqual(t, before[name], after[name])
	}
	for _, name := range []string{"client_id", "client_secret", "note"} {
		require.Equal(t, before[name], after[name])
	}
	_, failure = refresher.Refresh(t.Context(), renewed.Secret)
	require.Nil(t, failure)
	_, failure = refresher.Refresh(t.Context(), secret)
	require.Equal(t, "x_token_revoked", failure.Code, "a refresh token is valid once")
	require.Equal(t, autopost.Permanent, failure.Category)
	require.Equal(t, autopost.ScopeChannel, failure.Scope)
}

func TestRefreshFailuresContainNoSecret(t *testing.T) {
	core, server, refresher, secret := refreshers(t)
	wrong := fields(t, secret)
	wrong["client_secret"] = "canary-wrong"
	text, err := json.Marshal(wrong)
	require.NoError(t, err)
	_, failure := refresher.Refresh(t.Context(), autopost.NewSecret(string(text)))
	require.Equal(t, "x_unauthorized", failure.Code)
	mustHide := func(failure *autopost.Error) {
		out, err := json.Marshal(failure)
		require.NoError(t, err)
		require.NotContains(t, string(out), "canary")
		for _, name := range []string{"access_token", "refresh_token"} {
			require.NotContains(t, string(out), wrong[name])
		}
	}
	mustHide(failure)
	require.NoError(t, core.Faults.Add(sim.Fault{Platform: simulator.Platform, Effect: sim.EffectStatus, Status: 503, RetryAfter: 7, To: 1}))
	_, failure = refresher.Refresh(t.Context(), secret)
	require.Equal(t, autopost.CodeCredentialUnavailable, failure.Code)
	require.Equal(t, autopost.Transient, failure.Category)
	require.True(t, failure.Known, "the outcome is known")
	mustHide(failure)
	server.Disconnect("42")
	_, failure = refresher.Refresh(t.Context(), secret)
	require.Equal(t, "x_token_revoked", failure.Code)
	mustHide(failure)
	_, failure = refresher.Refresh(t.Context(), autopost.NewSecret("canary-bare"))
	require.Equal(t, autopost.CodeCredentialMissing, failure.Code)
	mustHide(failure)
}

func TestASpendingLimitDelaysTheRenewal(t *testing.T) {
	_, server, refresher, secret := refreshers(t)
	until := time.Now().UTC().Add(72 * time.Hour).Truncate(24 * time.Hour)
	server.SetSpendCap("app", until)
	_, failure := refresher.Refresh(t.Context(), secret)
	require.Equal(t, "x_no_credits", failure.Code)
	require.Equal(t, autopost.Transient, failure.Category)
	require.Greater(t, failure.RetryAfterMS, (24 * time.Hour).Milliseconds())
	server.SetSpendCap("app", time.Time{})
	_, failure = refresher.Refresh(t.Context(), secret)
	require.Nil(t, failure, "the refusal did not use up the refresh token")
}

func TestRenewal(t *testing.T) {
	refresher := twitter.NewRefresher("https://api.x.com", nil)
	for text, want := range map[string]autopost.Renewal{
		`bare-token`: autopost.RenewNever,
		`{"consumer_key":"a","consumer_secret":"b","access_token":"c","access_token_secret":"d"}`: autopost.RenewNever,
		`{"client_id":"a","access_token":"c"}`:                                                    autopost.RenewNever,
		`{"client_id":"a","refresh_token":"b"}`:                                                   autopost.RenewFirst,
		`{"client_id":"a","refresh_token":"b","access_token":"c"}`:                                autopost.RenewLater,
	} {
		require.Equal(t, want, refresher.Renewal(autopost.NewSecret(text)), text)
	}
}

func TestExchangeOfACode(t *testing.T) {
	var form map[string][]string
	answer := `{"token_type":"bearer","expires_in":7200,"access_token":"a1","refresh_token":"r1"}`
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, r.ParseForm())
		form = r.PostForm
		id, secret, _ := r.BasicAuth()
		form["basic"] = []string{id, secret}
		_, _ = w.Write([]byte(answer))
	}))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	refresher := twitter.NewRefresher(host.URL, client)
	app := autopost.NewSecret(`{"client_id":"client","client_secret":"hush"}`)
	renewed, failure := refresher.Exchange(t.Context(), app, "code-1", "verifier-1", "http://127.0.0.1:1/callback")
	require.Nil(t, failure)
	require.Equal(t, map[string][]string{
		"grant_type": {"authorization_code"}, "code": {"code-1"}, "code_verifier": {"verifier-1"}, "redirect_uri": {"http://127.0.0.1:1/callback"},
		"basic": {"client", "hush"},
	}, form)
	require.Equal(t, map[string]any{"client_id": "client", "client_secret": "hush", "access_token": "a1", "refresh_token": "r1"}, fields(t, renewed.Secret))
	answer = `{"token_type":"bearer","expires_in":7200,"access_token":"a1"}`
	_, failure = refresher.Exchange(t.Context(), app, "code-1", "verifier-1", "http://127.0.0.1:1/callback")
	require.Contains(t, failure.Message, "no refresh token")
}
