package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/api/rest"
	"autopost/internal/problem"
	"autopost/internal/worker"
)

const runID = "0199c6a0-0000-7000-8000-000000000001"

const secret = "canary-8d2e41"

var errGone = errors.New("connect to db.internal: refused")

// store is a Store with one key and one run.
type store struct {
	api.Store

	keyErr, runErr error
	asked          []string
	unseen         bool
	touched        int
}

func (s *store) ResolveAPIKey(_ context.Context, hash string) (*rest.Key, error) {
	sum := sha256.Sum256([]byte(secret))
	if s.keyErr != nil || hash != hex.EncodeToString(sum[:]) {
		return nil, s.keyErr
	}
	return &rest.Key{WorkspaceID: "acme", KeyID: "k1", Name: "test", Role: "operator", Unseen: s.unseen}, nil
}

func (s *store) TouchAPIKey(context.Context, string, string) error {
	s.touched++
	return errGone
}

func (s *store) List(context.Context, rest.Query) ([]json.RawMessage, error) {
	return nil, s.runErr
}

func (s *store) GetRun(_ context.Context, workspace, run string) (json.RawMessage, error) {
	s.asked = append(s.asked, "get_run "+workspace+"/"+run)
	if s.runErr != nil {
		return nil, s.runErr
	}
	if workspace == "acme" && run == runID {
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

func deps(s *store, checks ...api.Check) api.Deps {
	return api.Deps{Store: s, Checks: checks, Log: slog.New(slog.DiscardHandler)}
}

func ask(d api.Deps, method, target, authorization string) *httptest.ResponseRecorder {
	return askOf(api.Handler(d), method, target, authorization)
}

func askOf(h http.Handler, method, target, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
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
	kind, known := problem.Of(p.Type)
	require.True(t, known, "%s is not in the catalogue", p.Type)
	require.Equal(t, []any{kind.Status, kind.Title}, []any{status, p.Title})
	require.Equal(t, status, p.Status)
	return p.Detail
}

func TestRun(t *testing.T) {
	s := &store{}
	w := ask(deps(s), "GET", "/api/v1/runs/"+runID, "Bearer "+secret)
	require.Equal(t, 200, w.Code, w.Body.String())
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.JSONEq(t, `{"run_id":"r1","messages":["m1"]}`, w.Body.String())
	require.Equal(t, []string{"get_run acme/" + runID}, s.asked, "the workspace is the key's")
}

func TestUnknownRun(t *testing.T) {
	for target, status := range map[string]int{
		"/api/v1/runs/0199c6a0-0000-7000-8000-000000000002": 404, "/api/v1/runs/r2": 422, "/api/v1/runs/r%00": 404, "/api/v1/runs/r%ff": 404,
	} {
		s := &store{}
		requireProblem(t, ask(deps(s), "GET", target, "Bearer "+secret), status)
		require.Equal(t, target[len(target)-1] == '2' && status == 404, len(s.asked) == 1, target)
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
	require.Contains(t, string(out), "body.token")
	require.NotContains(t, string(out), "canary")
}

func TestEveryPathUnderAPINeedsAKey(t *testing.T) {
	var first *httptest.ResponseRecorder
	s := &store{}
	h := api.Handler(deps(s))
	for _, target := range []string{
		"/api", "/api/", "/api/v1/runs/" + runID, "/api/v1/runs/r2", "/api/v1/nothing", "//api/v1/runs/r1", "/x/../api/v1/runs/r1", "/api//v1",
	} {
		for _, authorization := range []string{"", "Bearer other", "Bearer ", "Basic " + secret, secret} {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				w := askOf(h, method, target, authorization)
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

func TestUnavailableDatabase(t *testing.T) {
	for name, s := range map[string]*store{"key": {keyErr: errGone}, "run": {runErr: errGone}} {
		t.Run(name, func(t *testing.T) {
			w := ask(deps(s), "GET", "/api/v1/runs/"+runID, "Bearer "+secret)
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
	ask(d, "GET", "/api/v1/runs/"+runID, "Bearer "+secret)
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
	require.Contains(t, spec.Paths["/api/v1/posts"], "post")
}

func TestHealth(t *testing.T) {
	w := ask(deps(&store{keyErr: errGone}, api.Check{Name: "database", Part: part(gone)}), "GET", "/healthz", "")
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
				w := ask(deps(&store{}, api.Check{Name: "database", Part: c.database, Remedy: "look at it"},
					api.Check{Name: "schema", Part: c.schema}, api.Check{Name: "storage", Part: c.storage}), "GET", "/readyz", "")
				require.Equal(t, c.within, time.Since(began))
				if c.want == "" {
					require.Equal(t, 200, w.Code)
					require.JSONEq(t, `{"status":"ready","checks":[{"name":"database","ok":true},{"name":"schema","ok":true},{"name":"storage","ok":true}]}`, w.Body.String())
					return
				}
				body := w.Body.String()
				require.Equal(t, c.want, requireProblem(t, w, 503))
				require.Equal(t, strings.Contains(c.want, "database"), strings.Contains(body, `{"name":"database","ok":false,"detail":"look at it"}`), body)
				require.NotContains(t, body, errGone.Error(), "an error may name hosts")
			})
		})
	}
}

// Each kind of error of the Store has its status.
func TestErrorsOfTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"argument": {fmt.Errorf("call: %w", &autopost.ArgumentError{Argument: "seconds", Reason: "is not between 1 and 9", Remedy: "pass less"}), 422},
		"defect":   {fmt.Errorf("%w: relation canary", worker.ErrRefused), 500},
		"away":     {errGone, 503},
		"slow":     {context.DeadlineExceeded, 503},
		"full":     {fmt.Errorf("the database: %w: relation canary", autopost.ErrNoSpace), 507},
	} {
		t.Run(name, func(t *testing.T) {
			for _, target := range []string{"/api/v1/runs/" + runID, "/api/v1/audit"} {
				w := ask(deps(&store{runErr: c.err}), "GET", target, "Bearer "+secret)
				requireProblem(t, w, c.status)
				require.NotContains(t, w.Body.String(), "canary")
				if c.status == 422 {
					require.Contains(t, w.Body.String(), `"errors":[{"field":"seconds","reason":"is not between 1 and 9","remedy":"pass less"}]`)
				}
			}
		})
	}
}

func TestUseOfAKeyIsRecorded(t *testing.T) {
	s := &store{unseen: true}
	require.Equal(t, 200, ask(deps(s), "GET", "/api/v1/audit", "Bearer "+secret).Code, "a failed record does not affect the caller")
	require.Equal(t, 1, s.touched)
	s.unseen = false
	ask(deps(s), "GET", "/api/v1/audit", "Bearer "+secret)
	require.Equal(t, 1, s.touched)
}

func TestDocsLoadNothingFromOtherHosts(t *testing.T) {
	w := ask(deps(&store{}), "GET", "/docs", "")
	require.Equal(t, 200, w.Code)
	page := w.Body.String()
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "ZgotmplZ", "the page was made unsafe")
	require.NotRegexp(t, `(src|@import|url\()`, page)
	style := page[strings.Index(page, "<style>")+len("<style>") : strings.Index(page, "</style>")]
	sum := sha256.Sum256([]byte(style))
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	require.Contains(t, page, "/api/v1/channels/{id}/pause")
}

func TestReferenceIsTheDescription(t *testing.T) {
	text, err := api.Description()
	require.NoError(t, err)
	kept, err := os.ReadFile("../../docs/reference/openapi.json")
	require.NoError(t, err)
	require.True(t, bytes.Equal(kept, text), "docs/reference/openapi.json is not what autopost openapi prints: make generate")
}

// The addresses beside the operations answer without a key.
func TestOpenAddresses(t *testing.T) {
	for _, address := range []string{"/docs", "/openapi.json", "/healthz", "/readyz"} {
		require.Equal(t, 200, ask(deps(&store{}), "GET", address, "").Code)
	}
	require.Equal(t, "GET", ask(deps(&store{}), "POST", "/docs", "").Header().Get("Allow"))
	requireProblem(t, ask(deps(&store{}), "GET", "/nowhere", ""), 404)
}
