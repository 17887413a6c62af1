// Package api serves the JSON API, and /healthz and /readyz.
//
// It holds no invariant. Each operation calls one database function for the
// workspace of the caller's key. Each resource has one file. Package rest holds
// the parts that all operations share.
package api

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"autopost/internal/api/rest"
	"autopost/internal/api/stream"
	"autopost/internal/problem"
)

// Deps are the dependencies of the API.
type Deps struct {
	Store Store
	Media Media
	// Sessions authenticates people who are signed in to the pages; nil accepts keys only.
	Sessions rest.Sessions
	// Sources polls sources without storing anything.
	Sources SourceTester
	// People signs people in.
	People People
	// Credentials asks platforms and stores secrets.
	Credentials Credentials
	// Raw reads raw payloads.
	Raw RawPayloads
	// Stream serves GET /api/v1/stream.
	Stream *stream.Hub
	// Checks are the checks of /readyz. Their names are public.
	Checks []Check
	Log    *slog.Logger
}

// Handler serves /api/, /raw/, /openapi.json, /docs, /healthz and /readyz.
func Handler(deps Deps) http.Handler { return New(deps) }

// Server serves what Handler says, and runs operations for the pages.
type Server struct {
	http.Handler

	operations func() pages
}

// New returns the server of the API.
func New(deps Deps) *Server {
	// The first request that needs the operations registers them: that is a quarter of the work of a start.
	operations := sync.OnceValue(func() pages { return newPages(deps) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) { operations().description.ServeHTTP(w, r) })
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, r *http.Request) { operations().docs.ServeHTTP(w, r) })
	mux.HandleFunc("GET /healthz", alive)
	mux.Handle("GET /readyz", readiness{checks: deps.Checks, log: deps.Log})
	mux.Handle("GET /raw/{workspace_id}/{token}", rawReader{deps.Store, deps.Raw, deps.Log})
	mux.HandleFunc("/", notFound(mux))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// This comes before any routing, so that a caller without a key cannot learn from a redirect or a 404 which
		// paths exist.
		if at := path.Clean("/" + r.URL.Path); at == "/api" || strings.HasPrefix(at, "/api/") {
			operations().guarded.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	return &Server{Handler: handler, operations: operations}
}

// pages are the handlers of the operations and of their description.
type pages struct {
	// inside is guarded without the check of the key.
	guarded, inside, description, docs http.Handler
}

func newPages(deps Deps) pages {
	inner := http.NewServeMux()
	api := newAPI(inner, deps)
	inner.HandleFunc("/", notFound(inner))
	inside := api.Bound(inner)
	return pages{guarded: api.Authenticate(inside), inside: inside, description: description(api.API), docs: docs(api.API)}
}

// server runs the operations of the API.
type server struct {
	*rest.Server

	db Store
}

// newAPI registers every operation on mux.
func newAPI(mux *http.ServeMux, deps Deps) *server {
	d := &server{Server: &rest.Server{API: humago.New(mux, apiConfig()), Store: deps.Store, Sessions: deps.Sessions, Log: deps.Log}, db: deps.Store}
	registerAll(d, deps)
	complete(d.API.OpenAPI())
	return d
}

func apiConfig() huma.Config {
	cfg := huma.DefaultConfig("autopost", "1")
	cfg.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	cfg.Info.Contact = &huma.Contact{Name: "The operator of the daemon"}
	cfg.Servers = []*huma.Server{
		{URL: "/", Description: "The daemon that serves this document."},
		{URL: "http://127.0.0.1:8080", Description: "A daemon on this machine with the default address."},
	}
	cfg.Info.Description = "All operations on a workspace. An API key belongs to one workspace. Lists have pages with next_cursor. Every write accepts an " +
		"Idempotency-Key. A manual change requires a reason, and most have dry_run. A refusal is a problem (RFC 9457) with a type of its own. RateLimit and RateLimit-Policy show how many requests may run at once."
	// description serves the document. The page of huma would load scripts from another host.
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

// Description returns the OpenAPI document of the API, indented.
func Description() ([]byte, error) {
	d := newAPI(http.NewServeMux(), Deps{})
	text, err := json.MarshalIndent(d.API.OpenAPI(), "", "  ")
	return append(text, '\n'), err
}

func description(api huma.API) http.Handler {
	encoded := sync.OnceValues(func() ([]byte, error) { return json.Marshal(api.OpenAPI()) })
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		spec, err := encoded()
		if err != nil {
			problem.Write(w, problem.Defect.Says("The description of the API could not be encoded."))
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		// The caller may be gone. There is no other way to report that.
		_, _ = w.Write(spec)
	})
}

// notFound answers requests without a route: 405 if the path has other methods, else 404.
func notFound(mux *http.ServeMux) http.HandlerFunc {
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
			problem.Write(w, problem.WrongMethod.Says("The method must be %s, got %s.", strings.Join(allowed, ", "), r.Method))
			return
		}
		problem.Write(w, problem.UnknownPath.Says("This path does not exist."))
	}
}
