package credential_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/credential"
	"autopost/internal/secret"
	"autopost/internal/sim"
	simx "autopost/internal/sim/twitter"
	"autopost/internal/testing/pgtest"
)

func TestTwoDaemonsRenewOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.bind(autopost.X, h.x())
	daemons := []*credential.Vault{h.vault(nil), h.vault(nil)}
	used, err := daemons[0].Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
	h.world.X.ExpireTokens()
	require.NoError(t, h.world.Faults.Add(sim.Fault{Platform: simx.Platform, Effect: sim.EffectSlow, DelayMS: 300}))

	got := make([]autopost.Secret, 24)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			var err error
			got[i], err = daemons[i%2].Renew(t.Context(), of("x"), used, unauthorized)
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, h.asked(simx.Platform))
	for _, s := range got {
		require.Equal(t, got[0].Reveal(), s.Reveal())
	}
	require.NotEqual(t, parts(t, used)["access_token"], parts(t, got[0])["access_token"])
	again, err := daemons[1].Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
	require.Equal(t, got[0].Reveal(), again.Reveal(), "the renewed secret wins over the file")
}

func TestGoogleCredentialIsRenewedBeforeItsFirstUse(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.bind(autopost.YouTube, h.google())
	v := h.vault(nil)
	first, err := v.Credential(t.Context(), "w", "youtube", autopost.YouTube)
	require.NoError(t, err)
	require.NotEmpty(t, parts(t, first)["access_token"])
	again, err := v.Credential(t.Context(), "w", "youtube", autopost.YouTube)
	require.NoError(t, err)
	require.Equal(t, first.Reveal(), again.Reveal())
	require.Equal(t, 1, h.asked("youtube"))
	h.Exec(`update autopost.credential_health set valid_until = now()`)
	later, err := v.Credential(t.Context(), "w", "youtube", autopost.YouTube)
	require.NoError(t, err)
	require.NotEqual(t, first.Reveal(), later.Reveal(), "an expired secret is not used")
	require.NoError(t, v.Refresh(t.Context(), "w", "youtube"))
	require.Equal(t, 3, h.asked("youtube"))
}

func TestFirstSecretAndItsRenewals(t *testing.T) {
	t.Parallel()
	h := open(t)
	old := h.x()
	h.bind(autopost.X, old)
	v := h.vault(nil)
	require.NoError(t, v.Refresh(t.Context(), "w", "x"))
	renewed, err := v.Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
	require.NotEqual(t, old["refresh_token"], parts(t, renewed)["refresh_token"])

	other := h.x()
	path := h.put(autopost.X, other)
	s, err := v.Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
	require.Equal(t, other, parts(t, s), "a changed file replaces the secret")
	require.NoError(t, v.Refresh(t.Context(), "w", "x"))
	s, err = v.Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
	require.NotEqual(t, other["access_token"], parts(t, s)["access_token"])
	require.NoError(t, os.Remove(path))
	without, err := v.Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
	require.Equal(t, s.Reveal(), without.Reveal(), "the file may be deleted after the renewal")

	_, err = v.Credential(t.Context(), "w", "none", autopost.X)
	require.ErrorIs(t, err, autopost.ErrNoCredential)
	_, err = v.Credential(t.Context(), "w", "x", autopost.YouTube)
	require.ErrorIs(t, err, autopost.ErrNoCredential)
	h.Exec(`update autopost.credential_bindings set secret_ref = 'env:CREDENTIAL_TEST_NOWHERE'`)
	_, err = v.Credential(t.Context(), "w", "x", autopost.X)
	require.ErrorIs(t, err, autopost.ErrNoCredential)
	require.ErrorContains(t, err, "CREDENTIAL_TEST_NOWHERE")
	require.Empty(t, pgtest.Column[string](h.DB, `select auth_ref from autopost.sealed_secrets where retired_at is null`))
}

func TestRenewOnlyIfAnotherSecretHelps(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.bind(autopost.X, h.x())
	v := h.vault(nil)
	used, err := v.Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
	suspended := unauthorized
	suspended.Code = "x_suspended"
	none, err := v.Renew(t.Context(), of("x"), used, suspended)
	require.NoError(t, err)
	require.True(t, none.IsZero(), "another secret does not end a suspension")
	require.Zero(t, h.asked(simx.Platform))
	fresh, err := v.Renew(t.Context(), of("x"), used, unauthorized)
	require.NoError(t, err)
	late, err := v.Renew(t.Context(), of("x"), used, unauthorized)
	require.NoError(t, err)
	require.Equal(t, fresh.Reveal(), late.Reveal(), "a caller with the old secret gets the new one")
	none, err = v.Renew(t.Context(), of("x"), used, suspended)
	require.NoError(t, err)
	require.True(t, none.IsZero())
	require.Equal(t, 1, h.asked(simx.Platform))
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ('w', 'bare', 'x', 'env:PATH'), ('w', 'bot', 'telegram', 'env:PATH')`)
	for authRef, platform := range map[string]autopost.Platform{"bare": autopost.X, "bot": autopost.Telegram} {
		none, err = v.Renew(t.Context(), autopost.Delivery{WorkspaceID: "w", AuthRef: authRef, Platform: platform}, autopost.NewSecret(os.Getenv("PATH")), unauthorized)
		require.NoError(t, err)
		require.True(t, none.IsZero(), authRef)
	}
}

// dying is a daemon that gets the answer of the platform and dies before it stores it.
type dying struct{ credential.Store }

func (dying) FinishRefresh(ctx context.Context, _, _ string, _ credential.SealedSecret, _ time.Duration) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func TestDeathBetweenTheAnswerAndItsStorage(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.bind(autopost.X, h.x())
	h.bind(autopost.YouTube, h.google())
	for _, platform := range []autopost.Platform{autopost.X, autopost.YouTube} {
		died := make(chan struct{})
		v := h.vault(func(r credential.Store) credential.Store {
			return signal{dying{r}, sync.OnceFunc(func() { close(died) })}
		})
		go func() { _ = v.Refresh(context.Background(), "w", string(platform)) }()
		<-died
	}
	h.expireLease()
	v := h.vault(nil)
	_, err := v.Credential(t.Context(), "w", "youtube", autopost.YouTube)
	require.NoError(t, err, "Google's refresh token stays valid")
	require.False(t, h.paused(autopost.YouTube))

	err = v.Refresh(t.Context(), "w", "x")
	refused, ok := errors.AsType[*autopost.RenewalError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "x_token_revoked", refused.Failure.Code, "X's refresh token was used up")
	require.True(t, h.paused(autopost.X))
	require.Equal(t, []string{"credential:x"}, pgtest.Column[string](h.DB, `select subject from autopost.alerts where kind = 'auth_lost' and ended_at is null`))
	require.Equal(t, 1, pgtest.Value[int](h.DB, `select count(*)::int from autopost.events where action = 'auth_lost'`))
	before := h.asked(simx.Platform)
	err = v.Refresh(t.Context(), "w", "x")
	require.Error(t, err)
	require.Equal(t, before, h.asked(simx.Platform), "X is not asked again for a secret that it refused")
}

// signal calls begun when storing starts: the platform has answered. The vault may repeat the call.
type signal struct {
	credential.Store
	begun func()
}

func (s signal) FinishRefresh(ctx context.Context, workspace, authRef string, row credential.SealedSecret, validFor time.Duration) (bool, error) {
	s.begun()
	return s.Store.FinishRefresh(ctx, workspace, authRef, row, validFor)
}

// flaky loses the connection before the first answers, and once after the work is done.
type flaky struct {
	credential.Store
	calls *int
}

func (f flaky) FinishRefresh(ctx context.Context, workspace, authRef string, row credential.SealedSecret, validFor time.Duration) (bool, error) {
	*f.calls++
	if *f.calls == 1 {
		return false, errors.New("connection refused")
	}
	applied, err := f.Store.FinishRefresh(ctx, workspace, authRef, row, validFor)
	if *f.calls == 2 {
		return false, errors.New("connection reset")
	}
	return applied, err
}

func TestNewSecretIsStoredDespiteLostConnections(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.bind(autopost.X, h.x())
	calls := 0
	v := h.vault(func(r credential.Store) credential.Store { return flaky{r, &calls} })
	require.NoError(t, v.Refresh(t.Context(), "w", "x"))
	require.Equal(t, 3, calls)
	require.Equal(t, []int{1}, pgtest.Column[int](h.DB, `select version from autopost.sealed_secrets`))
	require.NoError(t, h.vault(nil).Refresh(t.Context(), "w", "x"))
}

func TestChangedRowsAreRejected(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.bind(autopost.X, h.x())
	h.bind(autopost.YouTube, h.google())
	v := h.vault(nil)
	require.NoError(t, v.Refresh(t.Context(), "w", "x"))
	require.NoError(t, v.Refresh(t.Context(), "w", "youtube"))
	h.Exec(`create table public.kept as select * from autopost.sealed_secrets`)
	for name, edit := range map[string]string{
		"another text":         `update autopost.sealed_secrets set sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1) where auth_ref = 'x'`,
		"another data key":     `update autopost.sealed_secrets set wrapped_key = set_byte(wrapped_key, 20, get_byte(wrapped_key, 20) # 1) where auth_ref = 'x'`,
		"a row from elsewhere": `update autopost.sealed_secrets s set sealed = k.sealed, wrapped_key = k.wrapped_key, source = s.source from public.kept k where s.auth_ref = 'x' and k.auth_ref = 'youtube'`,
		"another version":      `update autopost.sealed_secrets set version = 7 where auth_ref = 'x'`,
	} {
		h.Exec(edit)
		_, err := v.Credential(t.Context(), "w", "x", autopost.X)
		require.ErrorContains(t, err, "changed, or moved here from elsewhere", name)
		require.NotErrorIs(t, err, autopost.ErrNoCredential, "%s: the queue waits, it does not fail", name)
		h.Exec(`delete from autopost.sealed_secrets; insert into autopost.sealed_secrets select * from public.kept`)
	}
	_, err := v.Credential(t.Context(), "w", "x", autopost.X)
	require.NoError(t, err)
}

func TestLostMasterKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.bind(autopost.X, h.x())
	v := h.vault(nil)
	require.NoError(t, v.Refresh(t.Context(), "w", "x"))
	key, err := os.ReadFile(h.keyFile())
	require.NoError(t, err)
	require.NoError(t, os.Remove(h.keyFile()))
	before := h.asked(simx.Platform)
	for _, err := range []error{v.Refresh(t.Context(), "w", "x"), v.EnsureKey(t.Context())} {
		require.ErrorIs(t, err, secret.ErrNoMasterKey)
	}
	require.ErrorContains(t, v.EnsureKey(t.Context()), "restore the file")
	require.NoFileExists(t, h.keyFile(), "a new file would hide the loss")
	require.Equal(t, before, h.asked(simx.Platform), "no token is used up that could not be stored")
	require.NoError(t, os.WriteFile(h.keyFile(), key, 0o600))
	require.NoError(t, v.Refresh(t.Context(), "w", "x"))
}

// The secret never appears outside its file, in all situations of its life.
func TestSecretIsNeverRevealed(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.x()
	h.bind(autopost.X, first)
	v := h.vault(nil)
	secrets := map[string]bool{}
	remember := func(s autopost.Secret) {
		for name, value := range parts(t, s) {
			if name != "client_id" {
				secrets[value] = true
			}
		}
	}
	var output strings.Builder
	record := func(s autopost.Secret, err error) {
		fmt.Fprintf(&output, "%v %+v %#v %s\n", err, err, err, s)
	}
	used, err := v.Credential(t.Context(), "w", "x", autopost.X)
	record(used, err)
	remember(used)
	for _, fault := range []sim.Fault{
		{Effect: sim.EffectStatus, Status: 503, Description: first["refresh_token"]},
		{Effect: sim.EffectStatus, Status: 401, Code: "invalid_client", Description: clientSecret},
	} {
		fault.Platform, fault.To = simx.Platform, 1
		require.NoError(t, h.world.Faults.Add(fault))
		record(v.Renew(t.Context(), of("x"), used, unauthorized))
		h.Exec(`update autopost.credential_health set next_refresh_at = now() - interval '1 second', failures = 0, lost_version = null, lost_at = null`)
	}
	h.world.Faults.Clear()
	fresh, err := v.Renew(t.Context(), of("x"), used, unauthorized)
	require.NoError(t, err)
	record(fresh, err)
	remember(fresh)
	h.world.X.Disconnect("42")
	record(v.Renew(t.Context(), of("x"), fresh, unauthorized))
	require.True(t, h.paused(autopost.X))
	h.Exec(`update autopost.sealed_secrets set key_id = 'unknown'`)
	record(v.Credential(t.Context(), "w", "x", autopost.X))
	require.NoError(t, os.Chmod(h.keyFile(), 0o644))
	record(v.Credential(t.Context(), "w", "x", autopost.X))

	output.WriteString(h.logs.String())
	for _, table := range pgtest.Column[string](h.DB, `select c.oid::regclass::text from pg_class c where c.relnamespace = 'autopost'::regnamespace and c.relkind in ('r', 'v')`) {
		for _, row := range pgtest.Column[string](h.DB, `select to_jsonb(t)::text from `+table+` t`) {
			output.WriteString(row)
		}
	}
	require.Contains(t, output.String(), "credential.refresh_failed")
	require.Contains(t, output.String(), "auth_lost")
	require.GreaterOrEqual(t, len(secrets), 5)
	for s := range secrets {
		quoted, err := json.Marshal(s)
		require.NoError(t, err)
		for _, form := range []string{s, string(quoted[1 : len(quoted)-1]), base64.StdEncoding.EncodeToString([]byte(s)), fmt.Sprintf("%x", s)} {
			require.NotContains(t, output.String(), form)
		}
	}
}

func TestASecretForAddressesGoesToItsHostsOnly(t *testing.T) {
	h := open(t)
	t.Setenv("SHOP_KEY", "canary-key")
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref, hosts)
		values ('w', 'shop', 'http', 'env:SHOP_KEY', '{api.example,api.example:8443}'), ('w', 'bot', 'telegram', 'env:SHOP_KEY', null)`)
	v := h.vault(nil)
	for address, allowed := range map[string]bool{
		"https://api.example/items": true, "https://API.example:8443/": true, "https://api.example:443/": false,
		"https://evil.example/": false, "https://api.example@evil.example/": false, "https://evil.example/api.example": false,
	} {
		at, err := url.Parse(address)
		require.NoError(t, err)
		got, err := v.ForAddress(t.Context(), "w", "shop", at)
		require.Equal(t, allowed, err == nil, "%s: %v", address, err)
		require.Equal(t, allowed, got.Reveal() == "canary-key")
		_, err = v.ForAddress(t.Context(), "w", "bot", at)
		require.ErrorIs(t, err, autopost.ErrNoCredential, "a token of a platform goes to no address")
	}
	_, err := v.Credential(t.Context(), "w", "shop", "http")
	require.ErrorIs(t, err, autopost.ErrNoCredential, "without an address")
}
