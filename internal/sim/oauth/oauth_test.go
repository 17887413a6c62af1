package oauth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/oauth"
)

const (
	callback = "http://127.0.0.1:1/callback"
	verifier = "a verifier that only the client knows"
)

func newPage(life time.Duration) *oauth.ConsentPage {
	return oauth.New(oauth.Config{
		Client: func(id string) (oauth.Client, bool) {
			return oauth.Client{Name: "App <b>", Callbacks: []string{callback}}, id == "client"
		},
		Accounts: func() []oauth.Account { return []oauth.Account{{ID: "42", Name: "@nyx"}} },
		Life:     func() time.Duration { return life },
	})
}

func request(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"response_type": {"code"}, "client_id": {"client"}, "redirect_uri": {callback}, "scope": {"write"}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		query.Set(changes[i], changes[i+1])
	}
	return query
}

func visit(d *oauth.ConsentPage, query, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/?"+query.Encode(), nil)
	if form != nil {
		r = httptest.NewRequest(http.MethodPost, "/?"+query.Encode(), strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func TestPageRedirectsOnlyToRegisteredCallbacks(t *testing.T) {
	for _, changes := range [][]string{{"client_id", "other"}, {"redirect_uri", callback + "/"}, {"redirect_uri", "http://127.0.0.1:2/callback"}, {"redirect_uri", ""}} {
		w := visit(newPage(time.Hour), request(changes...), nil)
		require.Equal(t, http.StatusBadRequest, w.Code, "%v", changes)
		require.Empty(t, w.Header().Get("Location"))
	}
	for _, changes := range [][]string{{"response_type", "token"}, {"scope", ""}, {"state", ""}, {"code_challenge_method", "plain"}, {"code_challenge", "short"}} {
		back, err := visit(newPage(time.Hour), request(changes...), nil).Result().Location()
		require.NoError(t, err, "%v", changes)
		require.Equal(t, "invalid_request", back.Query().Get("error"), "%v", changes)
	}
	require.Contains(t, visit(newPage(time.Hour), request(), nil).Body.String(), "App &lt;b&gt; asks")
	for _, form := range []url.Values{{"account": {"42"}, "decision": {"deny"}}, {"account": {"43"}, "decision": {"allow"}}, {}} {
		back, err := visit(newPage(time.Hour), request(), form).Result().Location()
		require.NoError(t, err)
		require.Equal(t, []string{"access_denied", "s", ""}, []string{back.Query().Get("error"), back.Query().Get("state"), back.Query().Get("code")})
	}
}

func TestCodeIsValidOnceForItsRequest(t *testing.T) {
	allow := url.Values{"account": {"42"}, "decision": {"allow"}}
	for name, c := range map[string]struct {
		life   time.Duration
		client string
		form   url.Values
		want   error
	}{
		"good":             {time.Hour, "client", url.Values{}, nil},
		"another app":      {time.Hour, "other", url.Values{}, oauth.ErrCode},
		"too late":         {0, "client", url.Values{}, oauth.ErrCode},
		"another callback": {time.Hour, "client", url.Values{"redirect_uri": {callback + "2"}}, oauth.ErrRedirect},
		"another verifier": {time.Hour, "client", url.Values{"code_verifier": {"guessed"}}, oauth.ErrVerifier},
		"no verifier":      {time.Hour, "client", url.Values{"code_verifier": {""}}, oauth.ErrVerifier},
	} {
		t.Run(name, func(t *testing.T) {
			d := newPage(c.life)
			back, err := visit(d, request(), allow).Result().Location()
			require.NoError(t, err)
			form := url.Values{"code": {back.Query().Get("code")}, "redirect_uri": {callback}, "code_verifier": {verifier}}
			for name, values := range c.form {
				form[name] = values
			}
			allowed, err := d.Redeem(c.client, form)
			require.ErrorIs(t, err, c.want)
			if err == nil {
				require.Equal(t, []string{"42", "write"}, []string{allowed.AccountID, allowed.Scope})
			}
			_, err = d.Redeem("client", form)
			require.ErrorIs(t, err, oauth.ErrCode, "a rejected code is used up too")
		})
	}
}
