// Package admin is the JSON API for people's programs, and the daemon's answers to
// machines that ask whether it is well.
//
// It holds no invariant: each operation is a database function called for the
// workspace of the caller's key. What all operations share is in door, what goes
// through in flow, how a workspace is set up in setup.
package admin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"autopost/internal/admin/door"
	"autopost/internal/admin/flow"
	"autopost/internal/admin/setup"
)

// Deps is what the API works with.
type Deps struct {
	Keys    door.Keys
	Records door.Records
	Media   flow.Media
	// Checks are what /readyz asks, each by a name that it may show to anyone.
	Checks []Check
	Log    *slog.Logger
}

// Handler serves /api/, /openapi.json, /docs, /healthz and /readyz.
func Handler(deps Deps) http.Handler {
	inner := http.NewServeMux()
	api := newAPI(inner, deps)
	inner.HandleFunc("/", notHere(inner))

	mux := http.NewServeMux()
	mux.Handle("GET /openapi.json", description(api.API))
	mux.Handle("GET /docs", docs(api.API))
	mux.HandleFunc("GET /healthz", alive)
	mux.Handle("GET /readyz", readiness{checks: deps.Checks, log: deps.Log})
	mux.HandleFunc("/", notHere(mux))

	guarded := api.Authenticate(api.Bound(inner))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Decided before any routing, so that no redirect or 404 tells a stranger
		// which paths exist.
		if at := path.Clean("/" + r.URL.Path); at == "/api" || strings.HasPrefix(at, "/api/") {
			guarded.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// newAPI registers every operation on mux.
func newAPI(mux *http.ServeMux, deps Deps) *door.Door {
	d := &door.Door{API: humago.New(mux, apiConfig()), Keys: deps.Keys, Records: deps.Records, Log: deps.Log}
	flow.Register(d, deps.Media)
	setup.Register(d)
	complete(d.API.OpenAPI())
	return d
}

func apiConfig() huma.Config {
	cfg := huma.DefaultConfig("autopost", "1")
	cfg.Info.Description = "Everything that can be done with a workspace. A key belongs to one workspace. Lists are paged by next_cursor; every write takes an " +
		"Idempotency-Key; what is changed by hand needs a reason and can mostly be tried by dry_run; what cannot be done is answered by a problem (RFC 9457)."
	// Served by description; the library's own page loads scripts from elsewhere.
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "", "", ""
	cfg.CreateHooks = nil
	cfg.DefaultFormat = "application/json"
	cfg.RejectUnknownQueryParameters = true
	cfg.Formats = map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", Description: "An API key of one workspace: Authorization: Bearer KEY."},
	}
	cfg.Security = []map[string][]string{{"key": {}}}
	return cfg
}

// Description is the OpenAPI document of the API, indented.
func Description() ([]byte, error) {
	d := newAPI(http.NewServeMux(), Deps{})
	text, err := json.MarshalIndent(d.API.OpenAPI(), "", "  ")
	return append(text, '\n'), err
}

func description(api huma.API) http.Handler {
	spec, err := json.Marshal(api.OpenAPI())
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			door.WriteProblem(w, door.NewProblem(http.StatusInternalServerError, "The description of the API cannot be written."))
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		// A caller that is gone cannot be told so.
		_, _ = w.Write(spec)
	})
}

// notHere answers what no route of mux does: 405 where the path has other methods, else 404.
func notHere(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch} {
			probe := r.Clone(r.Context())
			probe.Method = method
			if _, pattern := mux.Handler(probe); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			door.WriteProblem(w, door.NewProblem(http.StatusMethodNotAllowed, "This path takes "+strings.Join(allowed, ", ")+"."))
			return
		}
		door.WriteProblem(w, door.NewProblem(http.StatusNotFound, "There is nothing here."))
	}
}
