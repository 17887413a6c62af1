package admin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"autopost/internal/admin"
)

const secret = "canary-8d2e41"

var errGone = errors.New("connect to db.internal: refused")

// store knows one key and one run of its workspace.
type store struct {
	keyErr, runErr error
	asked          []string
}

func (s *store) ResolveAPIKey(_ context.Context, hash string) (*admin.Key, error) {
	sum := sha256.Sum256([]byte(secret))
	if s.keyErr != nil || hash != hex.EncodeToString(sum[:]) {
		return nil, s.keyErr
	}
	return &admin.Key{WorkspaceID: "acme", KeyID: "k1", Role: "viewer"}, nil
}

func (s *store) GetRun(_ context.Context, workspace, runID string) (json.RawMessage, error) {
	s.asked = append(s.asked, workspace+"/"+runID)
	if s.runErr != nil {
		return nil, s.runErr
	}
	if workspace == "acme" && runID == "r1" {
		return json.RawMessage(`{"run_id": "r1", "messages": ["m1"]}`), nil
	}
	return nil, nil
}

type part func(context.Context) error

func (p part) Ready(ctx context.Context) error { return p(ctx) }

func well(context.Context) error { return nil }
func gone(context.Context) error { return errGone }
func hung(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func deps(s *store, checks ...admin.Check) admin.Deps {
	return admin.Deps{Keys: s, Runs: s, Checks: checks, Log: slog.New(slog.DiscardHandler)}
}

func ask(d admin.Deps, method, target, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	admin.Handler(d).ServeHTTP(w, r)
	return w
}

func requireProblem(t *testing.T, w *httptest.ResponseRecorder, status int) string {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	require.Equal(t, "about:blank", p.Type)
	require.Equal(t, http.StatusText(status), p.Title)
	require.Equal(t, status, p.Status)
	return p.Detail
}

func TestRun(t *testing.T) {
	s := &store{}
	w := ask(deps(s), "GET", "/api/v1/runs/r1", "Bearer "+secret)
	require.Equal(t, 200, w.Code, w.Body.String())
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.JSONEq(t, `{"run_id":"r1","messages":["m1"]}`, w.Body.String())
	require.Equal(t, []string{"acme/r1"}, s.asked, "the workspace is the key's")
}

func TestRunThatIsNotThere(t *testing.T) {
	for name, target := range map[string]string{
		"unknown":       "/api/v1/runs/r2",
		"NUL":           "/api/v1/runs/r%00",
		"invalid UTF-8": "/api/v1/runs/r%ff",
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{}
			requireProblem(t, ask(deps(s), "GET", target, "Bearer "+secret), 404)
			if name != "unknown" {
				require.Empty(t, s.asked)
			}
		})
	}
}

func TestRefusedValueIsNotEchoed(t *testing.T) {
	long := "canary" + string(bytes.Repeat([]byte("x"), 300))
	w := ask(deps(&store{}), "GET", "/api/v1/runs/"+long, "Bearer "+secret)
	requireProblem(t, w, 422)
	require.Contains(t, w.Body.String(), "path.run_id")
	require.NotContains(t, w.Body.String(), "canary")

	err := huma.Error422UnprocessableEntity("no", &huma.ErrorDetail{Message: "m", Location: "body.token", Value: "canary"})
	out, _ := json.Marshal(err)
	require.NotContains(t, string(out), "canary")
}

func TestEveryPathUnderAPINeedsAKey(t *testing.T) {
	var first *httptest.ResponseRecorder
	for _, target := range []string{
		"/api", "/api/", "/api/v1/runs/r1", "/api/v1/runs/r2", "/api/v1/nothing", "//api/v1/runs/r1", "/x/../api/v1/runs/r1", "/api//v1",
	} {
		for _, authorization := range []string{"", "Bearer other", "Bearer ", "Basic " + secret, secret} {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				s := &store{}
				w := ask(deps(s), method, target, authorization)
				requireProblem(t, w, 401)
				require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
				if first == nil {
					first = w
				}
				require.Equal(t, first.Body.String(), w.Body.String())
				require.Empty(t, s.asked)
			}
		}
	}
	requireProblem(t, ask(deps(&store{}), "GET", "/api/v1/nothing", "Bearer "+secret), 404)
}

func TestDatabaseThatDoesNotAnswer(t *testing.T) {
	for name, s := range map[string]*store{"key": {keyErr: errGone}, "run": {runErr: errGone}} {
		t.Run(name, func(t *testing.T) {
			w := ask(deps(s), "GET", "/api/v1/runs/r1", "Bearer "+secret)
			requireProblem(t, w, 503)
			require.Equal(t, "5", w.Header().Get("Retry-After"))
			require.NotContains(t, w.Body.String(), "db.internal")
		})
	}
}

func TestKeyIsNeverLogged(t *testing.T) {
	var logs bytes.Buffer
	d := deps(&store{runErr: errGone})
	d.Log = slog.New(slog.NewJSONHandler(&logs, nil))
	ask(d, "GET", "/api/v1/runs/r1", "Bearer "+secret)
	require.Contains(t, logs.String(), "acme")
	require.NotContains(t, logs.String(), secret)
}

func TestDescription(t *testing.T) {
	w := ask(deps(&store{}), "GET", "/openapi.json", "")
	require.Equal(t, 200, w.Code)
	var spec struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &spec))
	require.Regexp(t, `^3\.1\.`, spec.OpenAPI)
	require.Contains(t, spec.Paths["/api/v1/runs/{run_id}"], "get")
	requireProblem(t, ask(deps(&store{}), "GET", "/docs", ""), 404)
}

func TestHealth(t *testing.T) {
	w := ask(deps(&store{keyErr: errGone}, admin.Check{Name: "database", Part: part(gone)}), "GET", "/healthz", "")
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `{"status":"ok"}`, w.Body.String())
}

func TestReadiness(t *testing.T) {
	for _, c := range []struct {
		name                      string
		database, schema, storage part
		want                      string
		within                    time.Duration
	}{
		{"all there", well, well, well, "", 0},
		{"database gone", gone, gone, well, "Not ready: database, schema.", 0},
		{"database hangs", hung, well, well, "Not ready: database.", 2 * time.Second},
		{"storage hangs", well, well, hung, "Not ready: storage.", 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := ask(deps(&store{}, admin.Check{Name: "database", Part: c.database},
					admin.Check{Name: "schema", Part: c.schema}, admin.Check{Name: "storage", Part: c.storage}), "GET", "/readyz", "")
				require.Equal(t, c.within, time.Since(began))
				if c.want == "" {
					require.Equal(t, 200, w.Code)
					return
				}
				require.Equal(t, c.want, requireProblem(t, w, 503))
			})
		})
	}
}
