package twitter_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/twitter"
)

const meURL = "http://example.com/2/users/me"

func TestSignaturesAreVerified(t *testing.T) {
	f := newFixture(t)
	good := f.signature("GET", meURL+"?user.fields=a%20b", nil, "t+secret")
	require.Equal(t, 200, f.serve(good, "GET", meURL+"?user.fields=a%20b", "", "").status)
	f.refused(f.serve(good, "GET", meURL+"?user.fields=a%20b", "", ""), 401, `"title":"Unauthorized"`)
	require.Contains(t, f.core.Log.Entries()[1].Notes[0], "nonce")

	signed := f.signature("POST", "http://example.com/2/tweets", nil, "t+secret")
	r := f.serve(signed, "POST", "http://example.com/2/tweets", "application/json", `{"text":"a JSON body is not signed"}`)
	require.Equal(t, 201, r.status, "%s", r.body)

	for name, header := range map[string]string{
		"another secret":     f.signature("GET", meURL, nil, "wrong"),
		"another method":     f.signature("POST", meURL, nil, "t+secret"),
		"another address":    f.signature("GET", meURL+"x", nil, "t+secret"),
		"another parameter":  f.signature("GET", meURL+"?user.fields=b", nil, "t+secret"),
		"another consumer":   f.signature("GET", meURL, map[string]string{"oauth_consumer_key": "else"}, "t+secret"),
		"another token":      f.signature("GET", meURL, map[string]string{"oauth_token": "else"}, "t+secret"),
		"another algorithm":  f.signature("GET", meURL, map[string]string{"oauth_signature_method": "PLAINTEXT"}, "t+secret"),
		"another version":    f.signature("GET", meURL, map[string]string{"oauth_version": "2.0"}, "t+secret"),
		"no nonce":           f.signature("GET", meURL, map[string]string{"oauth_nonce": ""}, "t+secret"),
		"a parameter twice":  f.signature("GET", meURL, nil, "t+secret") + `, oauth_nonce="n"`,
		"nothing":            "",
		"an unknown bearer":  "Bearer unknown-token",
		"a refresh token":    "Bearer " + f.refresh,
		"an unknown scheme":  "Basic YTpi",
		"a half-quoted pair": "OAuth oauth_token",
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 401, f.serve(header, "GET", meURL, "", "").status)
		})
	}
	late := strconv.FormatInt(time.Now().Add(-6*time.Minute).Unix(), 10)
	f.refused(f.serve(f.signature("GET", meURL, map[string]string{"oauth_timestamp": late}, "t+secret"), "GET", meURL, "", ""), 401, `"code":135`)
	for _, e := range f.core.Log.Entries() {
		require.NotContains(t, e.Credential, "token")
	}
}

func (f *fixture) renew(refresh, client string) reply {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {"client"}}
	authorization := ""
	if client != "" {
		authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(client))
	}
	return f.serve(authorization, "POST", "/2/oauth2/token", "application/x-www-form-urlencoded", form.Encode())
}

func TestRefreshTokensRotate(t *testing.T) {
	f := newFixture(t)
	f.refused(f.renew(f.refresh, ""), 401, `"error":"unauthorized_client"`)
	f.refused(f.renew(f.refresh, "client:wrong"), 401, `"error":"unauthorized_client"`)
	r := f.renew(f.refresh, "client:hush")
	require.Equal(t, 200, r.status, "%s", r.body)
	var renewed struct {
		TokenType string `json:"token_type"`
		ExpiresIn int    `json:"expires_in"`
		Access    string `json:"access_token"`
		Refresh   string `json:"refresh_token"`
		Scope     string `json:"scope"`
	}
	require.NoError(t, json.Unmarshal(r.body, &renewed))
	require.Equal(t, "bearer", renewed.TokenType)
	require.Equal(t, 7200, renewed.ExpiresIn)
	require.Equal(t, twitter.AllScopes, renewed.Scope)
	require.Equal(t, 200, f.as(renewed.Access, "GET", "/2/users/me", "").status)

	f.refused(f.renew(f.refresh, "client:hush"), 400, "Value passed for the token was invalid.")
	f.refused(f.renew("unknown-token", "client:hush"), 400, `"error":"invalid_request"`)
	require.Equal(t, 200, f.renew(renewed.Refresh, "client:hush").status)
	f.Disconnect("42")
	require.Equal(t, 401, f.as(renewed.Access, "GET", "/2/users/me", "").status)
	f.refused(f.serve("", "POST", "/2/oauth2/token", "application/x-www-form-urlencoded", "grant_type=password"), 400, "unsupported_grant_type")
	f.refused(f.serve("", "POST", "/2/oauth2/token", "application/json", "{}"), 400, "not a form")
}

func TestAccessTokensExpireAtTheSimulatorPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		<-time.After(2*time.Hour - time.Second)
		require.Equal(t, 200, f.do("GET", "/2/users/me", "").status)
		<-time.After(time.Second)
		f.refused(f.do("GET", "/2/users/me", ""), 401, "Unauthorized")
		require.NoError(t, f.core.Pace.Set(0.001))
		quick, _, err := f.GrantOAuth2("app", "42", twitter.AllScopes)
		require.NoError(t, err)
		<-time.After(7200 * time.Millisecond)
		require.Equal(t, 401, f.as(quick, "GET", "/2/users/me", "").status)
	})
}

func TestRightsOfCredentials(t *testing.T) {
	f := newFixture(t)
	reading, none, err := f.GrantOAuth2("app", "42", "tweet.read users.read")
	require.NoError(t, err)
	require.Empty(t, none, "no offline.access, no refresh token")
	require.Equal(t, 200, f.as(reading, "GET", "/2/users/me", "").status)
	f.refused(f.as(reading, "POST", "/2/tweets", `{"text":"x"}`), 403, "scope")
	appOnly, err := f.GrantAppOnly("app")
	require.NoError(t, err)
	f.refused(f.as(appOnly, "GET", "/2/users/me", ""), 403, "/2/problems/unsupported-authentication")

	require.NoError(t, f.AddApp(twitter.App{Name: "ro", ConsumerKey: "ckey", ConsumerSecret: "c/sec ret", ReadOnly: true}))
	require.NoError(t, f.GrantOAuth1("ro", "42", "42-token", "t+secret"))
	f.refused(f.serve(f.signature("POST", "http://example.com/2/tweets", nil, "t+secret"), "POST", "http://example.com/2/tweets", "application/json", `{"text":"x"}`),
		403, "/2/problems/oauth1-permissions")
	require.NoError(t, f.AddApp(twitter.App{Name: "out", ClientID: "out", Unenrolled: true}))
	outside, _, err := f.GrantOAuth2("out", "42", twitter.AllScopes)
	require.NoError(t, err)
	f.refused(f.as(outside, "GET", "/2/users/me", ""), 403, "/2/problems/client-forbidden")

	f.SetStanding("42", twitter.StandingSuspended)
	f.refused(f.post(`{"text":"x"}`), 403, "/2/problems/user-suspended")
	f.SetStanding("42", twitter.StandingLocked)
	f.refused(f.post(`{"text":"x"}`), 403, `"code":326`)
}

func TestAnyAccount(t *testing.T) {
	core := sim.NewCore(0)
	f := &fixture{Server: twitter.New(core, twitter.Options{AnyAccount: true}), t: t, core: core, token: "77-whatever"}
	require.Equal(t, "77", f.data(f.do("GET", "/2/users/me", ""))["id"])
	r := f.renew("77-refresh", "any:thing")
	require.Equal(t, 200, r.status, "%s", r.body)
	f.refused(f.renew("77-refresh", "any:thing"), 400, "Value passed for the token was invalid.")
	f.ExpireTokens()
	require.Equal(t, 401, f.do("GET", "/2/users/me", "").status)

	change := map[string]string{"oauth_consumer_key": "c/sec ret", "oauth_token": "78-token"}
	header := f.signature("GET", meURL, change, "78-token-secret")
	require.Equal(t, 401, f.serve(header, "GET", meURL, "", "").status, "a key has its form")
	require.NoError(t, f.AddApp(twitter.App{Name: "known", ConsumerKey: "ckey", ConsumerSecret: "c/sec ret"}))
	change["oauth_consumer_key"] = "ckey"
	require.Equal(t, "78", f.data(f.serve(f.signature("GET", meURL, change, "78-token-secret"), "GET", meURL, "", ""))["id"])
	require.Equal(t, 401, f.serve(f.signature("GET", meURL, change, "guess"), "GET", meURL, "", "").status)
}
