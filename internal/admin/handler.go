// Package admin is the JSON API for people's programs, and the daemon's answers to
// machines that ask whether it is well.
//
// It holds no invariant: each operation is a database function called for the
// workspace of the caller's key. One file a resource.
package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// storeTimeout bounds each call to the database.
const storeTimeout = 10 * time.Second

// Key is who calls: an API key belongs to one workspace and has one role.
type Key struct {
	WorkspaceID string
	KeyID       string
	Role        string
}

// Keys resolves API keys.
type Keys interface {
	// ResolveAPIKey finds the valid key with this lower-case hexadecimal SHA-256; nil
	// when there is none.
	ResolveAPIKey(ctx context.Context, keyHash string) (*Key, error)
}

// Deps is what the API works with.
type Deps struct {
	Keys Keys
	Runs Runs
	// Checks are what /readyz asks, each by a name that it may show to anyone.
	Checks []Check
	Log    *slog.Logger
}

// Handler serves /api/, /openapi.json, /healthz and /readyz.
func Handler(deps Deps) http.Handler {
	inner := http.NewServeMux()
	api := humago.New(inner, apiConfig())
	registerRuns(api, deps)
	inner.HandleFunc("/", notFound)

	mux := http.NewServeMux()
	mux.Handle("GET /openapi.json", description(api))
	mux.HandleFunc("GET /healthz", alive)
	mux.Handle("GET /readyz", readiness{checks: deps.Checks, log: deps.Log})
	mux.HandleFunc("/", notFound)

	guarded := authenticate(deps, inner)
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

func apiConfig() huma.Config {
	cfg := huma.DefaultConfig("autopost", "1")
	// Served by description; the library's own page loads scripts from elsewhere.
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "", "", ""
	cfg.CreateHooks = nil
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", Description: "An API key of one workspace: Authorization: Bearer KEY."},
	}
	cfg.Security = []map[string][]string{{"key": {}}}
	return cfg
}

func description(api huma.API) http.Handler {
	spec, err := json.Marshal(api.OpenAPI())
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			writeProblem(w, http.StatusInternalServerError, "The description of the API cannot be written.")
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		// A caller that is gone cannot be told so.
		_, _ = w.Write(spec)
	})
}

type callerKey struct{}

// caller is the key by which a request was authenticated.
func caller(ctx context.Context) Key {
	key, _ := ctx.Value(callerKey{}).(Key)
	return key
}

func authenticate(deps Deps, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := resolve(r, deps.Keys)
		if err != nil {
			deps.Log.Error("admin.unavailable", "error", err)
			w.Header().Set("Retry-After", comeAgain)
			writeProblem(w, http.StatusServiceUnavailable, unavailable)
			return
		}
		if key == nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="autopost"`)
			writeProblem(w, http.StatusUnauthorized, "No valid API key. Send one as Authorization: Bearer KEY.")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, *key)))
	})
}

// resolve returns nil when the request bears no valid key.
func resolve(r *http.Request, keys Keys) (*Key, error) {
	scheme, secret, found := strings.Cut(r.Header.Get("Authorization"), " ")
	secret = strings.TrimSpace(secret)
	if !found || !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, nil
	}
	hash := sha256.Sum256([]byte(secret))
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	key, err := keys.ResolveAPIKey(ctx, hex.EncodeToString(hash[:]))
	if err != nil {
		return nil, fmt.Errorf("resolve api key: %w", err)
	}
	return key, nil
}
