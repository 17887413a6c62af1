package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/webhook"
)

// The key, message and signature are the example of the specification.
const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDazfgh2Lz"
)

type fixture struct {
	*webhook.Server
	t    *testing.T
	core *sim.Core
}

func newFixture(t *testing.T) fixture {
	core := sim.NewCore(0)
	f := fixture{webhook.New(core, webhook.Options{}), t, core}
	require.NoError(t, f.AddEndpoint("crm", oldSecret, newSecret))
	return f
}

func sign(t *testing.T, secret, id string, at time.Time, body string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	require.NoError(t, err)
	mac := hmac.New(sha256.New, key)
	_, err = mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "." + body))
	require.NoError(t, err)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (f fixture) post(path, id string, at time.Time, signature, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("webhook-id", id)
	request.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	request.Header.Set("webhook-signature", signature)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, request)
	return w
}

// send posts a correctly signed event.
func (f fixture) send(path, id, body string) *httptest.ResponseRecorder {
	return f.post(path, id, time.Now(), sign(f.t, oldSecret, id, time.Now(), body), body)
}

func TestSignaturesOfTheSpecification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Unix(1614265330, 0)
		<-time.After(time.Until(at))
		f := newFixture(t)
		w := f.post("/crm", "msg_p5jXN8AQM9LWM0D4loKWxJek", at, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", `{"test": 2432232314}`)
		require.Equal(t, 204, w.Code, "%s", w.Body)
		<-time.After(webhook.Tolerance)
		w = f.post("/crm", "msg_p5jXN8AQM9LWM0D4loKWxJek", at, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", `{"test": 2432232314}`)
		require.Equal(t, 204, w.Code, "within the tolerance")
		<-time.After(time.Second)
		w = f.post("/crm", "msg_p5jXN8AQM9LWM0D4loKWxJek", at, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", `{"test": 2432232314}`)
		require.Equal(t, 401, w.Code)
		require.Contains(t, w.Body.String(), "too old")
		require.Equal(t, 2, f.Events("crm")[0].Copies)
	})
}

func TestInvalidEventsAreRejected(t *testing.T) {
	f := newFixture(t)
	now, body := time.Now(), `{"type":"post.sent"}`
	good := sign(t, oldSecret, "m1", now, body)
	for _, c := range []struct {
		name, path, id string
		at             time.Time
		signature      string
		body           string
		status         int
		reason         string
	}{
		{"no endpoint", "/else", "m1", now, good, body, 404, "no such endpoint"},
		{"no id", "/crm", "", now, good, body, 401, "missing"},
		{"no signature", "/crm", "m1", now, "", body, 401, "missing"},
		{"dot in the id", "/crm", "m.1", now, good, body, 401, "dot"},
		{"early", "/crm", "m1", now.Add(6 * time.Minute), good, body, 401, "future"},
		{"another id", "/crm", "m2", now, good, body, 401, "does not match"},
		{"another body", "/crm", "m1", now, good, body + " ", 401, "does not match"},
		{"another version", "/crm", "m1", now, "v2" + good[2:], body, 401, "does not match"},
		{"no base64", "/crm", "m1", now, "v1,???", body, 401, "does not match"},
		{"no JSON", "/crm", "m1", now, sign(t, oldSecret, "m1", now, "x"), "x", 400, "not JSON"},
		{"large", "/crm", "m1", now, good, strings.Repeat("x", 1<<20+1), 413, "1 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := f.post(c.path, c.id, c.at, c.signature, c.body)
			require.Equal(t, c.status, w.Code)
			require.Contains(t, w.Body.String(), c.reason)
			entries := f.core.Log.Entries()
			require.Contains(t, entries[len(entries)-1].Reason, c.reason)
		})
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/crm", nil))
	require.Equal(t, 405, w.Code)
	require.Empty(t, f.Events("crm"))
	require.Error(t, f.AddEndpoint("short", "whsec_c2hvcnQ="))
	require.Error(t, f.AddEndpoint("none"))
}

func TestEventsInOrderAndOnce(t *testing.T) {
	f := newFixture(t)
	for _, id := range []string{"b", "a", "b", "c"} {
		require.Equal(t, 204, f.send("/crm", id, `{"type":"post.sent","id":"`+id+`"}`).Code)
	}
	body := `{"type":"post.sent"}`
	both := sign(t, "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32)), "d", time.Now(), body) + " " + sign(t, newSecret, "d", time.Now(), body)
	require.Equal(t, 204, f.post("/crm", "d", time.Now(), both, body).Code, "one signature of several matches one secret of several")
	var ids []string
	for _, e := range f.Events("crm") {
		ids = append(ids, e.ID)
		require.Equal(t, "post.sent", e.Type)
	}
	require.Equal(t, []string{"b", "a", "c", "d"}, ids)
	require.Equal(t, []string{"webhook-id was seen before"}, f.core.Log.Entries()[2].Notes)
	require.Equal(t, "post.sent", f.core.Log.Entries()[0].Title)
	f.send("/crm", "a", `{"other":true}`)
	require.Len(t, f.core.Log.Entries()[5].Notes, 2, "another body under the same id")
	f.Reset()
	require.Empty(t, f.Events("crm"))
}

func TestAnyAnswer(t *testing.T) {
	f := newFixture(t)
	require.Equal(t, 410, f.send("/crm?status=410", "a", `{}`).Code)
	w := f.send("/crm?status=302", "a", `{}`)
	require.Equal(t, 302, w.Code)
	require.Equal(t, "/crm-moved", w.Header().Get("Location"))
	f.SetStatus("crm", http.StatusGone)
	require.Equal(t, 410, f.send("/crm", "a", `{}`).Code)
	f.SetStatus("crm", 0)
	require.Empty(t, f.Events("crm"), "a refused event is not stored")
	require.Equal(t, 201, f.send("/crm?status=201", "a", `{}`).Code)
	require.NoError(t, f.core.Faults.Add(sim.Fault{Platform: webhook.Platform, Chat: "crm", To: 1, Effect: sim.EffectStatus, Status: 503, RetryAfter: 7}))
	w = f.send("/crm", "b", `{}`)
	require.Equal(t, 503, w.Code)
	require.Equal(t, "7", w.Header().Get("Retry-After"))
	require.NoError(t, f.core.Faults.Add(sim.Fault{To: 1, Effect: sim.EffectAcceptThenDrop}))
	require.Panics(t, func() { f.send("/crm", "b", `{}`) }, "the connection is aborted")
	require.Len(t, f.Events("crm"), 2)
}

func TestAnyEndpointReturnsItsSecret(t *testing.T) {
	core := sim.NewCore(0)
	f := fixture{webhook.New(core, webhook.Options{AnyEndpoint: true}), t, core}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/new", nil))
	var answer struct{ Secret string }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, 204, f.post("/new", "a", time.Now(), sign(t, answer.Secret, "a", time.Now(), `{}`), `{}`).Code)
	require.Equal(t, 401, f.send("/new", "b", `{}`).Code)
}
