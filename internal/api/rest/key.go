package rest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"autopost/internal/problem"
)

// keyConcurrency is how many requests of one key a daemon runs at once.
const keyConcurrency = 64

// Key is the API key of a caller. It belongs to one workspace and has one role.
type Key struct {
	WorkspaceID string `json:"workspace_id"`
	KeyID       string `json:"key_id"`
	Name        string `json:"name"`
	Role        string `json:"role"`
	// Scopes narrow the role; empty means everything that the role may do.
	Scopes []string `json:"scopes"`
	// Unseen means that TouchAPIKey has a use to record.
	Unseen bool `json:"unseen"`
	// UserID is set for a person with a session, who has no key.
	UserID string `json:"-"`
	// InstallationOwner means that this person owns the installation.
	InstallationOwner bool `json:"-"`
	// Confirmed means that this person proved the password a short time ago.
	Confirmed bool `json:"-"`
	// SessionID and SessionHash are the id and the SHA-256 of the token of the session.
	SessionID   string `json:"-"`
	SessionHash string `json:"-"`
}

// SessionsPath begins sessions. A request there needs no key.
const SessionsPath = "/api/v1/sessions"

// NewKey describes a new key. Scopes and ExpiresAt are optional.
type NewKey struct {
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	Scopes    []string   `json:"scopes,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// id identifies the caller: the key, or the person of a session.
func (k Key) id() string { return cmp.Or(k.KeyID, k.UserID) }

// Sessions returns the person of a request with a session; nil without one. It refuses a request that another site may
// have made.
type Sessions func(r *http.Request) (person *Key, refused *problem.Problem, err error)

// Identity is the name of the caller in decisions, drafts and the audit log.
func (k Key) Identity() string {
	if k.UserID != "" {
		return "user:" + k.UserID
	}
	return "key:" + k.KeyID
}

// Source returns the way of a decision of the caller.
func (k Key) Source() string {
	if k.UserID != "" {
		return "page"
	}
	return "api"
}

// WithCaller returns a context whose operations act for key. The caller of this function has authenticated it.
func WithCaller(ctx context.Context, key Key) context.Context {
	return context.WithValue(ctx, callerKey{}, key)
}

// May reports whether the role of the key includes role.
func (k Key) May(role string) bool { return slices.Index(roles, k.Role) >= slices.Index(roles, role) }

// Roles returns all roles. Each may do everything that the earlier ones may.
func Roles() []string { return slices.Clone(roles) }

// NewToken returns 32 random bytes as text: a secret that is shown once.
func NewToken() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// TokenHash returns the lower-case hexadecimal SHA-256 of a token. The database has only this hash.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

type callerKey struct{}

// Caller returns the key that authenticated the request.
func Caller(ctx context.Context) Key {
	key, _ := ctx.Value(callerKey{}).(Key)
	return key
}

// Authenticate requires a valid key and limits the running requests of each key.
func (d *Server) Authenticate(next http.Handler) http.Handler {
	busy := counter{of: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == SessionsPath {
			next.ServeHTTP(w, r)
			return
		}
		key, refused, err := d.resolve(r)
		if refused != nil {
			problem.Write(w, refused)
			return
		}
		if err != nil {
			d.Log.Error("admin.unavailable", "error", err)
			w.Header().Set("Retry-After", RetrySeconds)
			problem.Write(w, problem.Unavailable.Says(unavailable))
			return
		}
		if key == nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="autopost"`)
			problem.Write(w, problem.UnknownKey.Says("The request has no valid API key. Send one as Authorization: Bearer KEY."))
			return
		}
		if r.URL.Path != StreamPath { // streams have bounds of their own
			running, entered := busy.enter(key.id())
			problem.Quota{Name: "running", Most: keyConcurrency, Left: keyConcurrency - running}.Show(w)
			if !entered {
				w.Header().Set("Retry-After", "1")
				problem.Write(w, problem.TooManyRunning.Says("This key has %d running requests. Wait for their answers.", keyConcurrency))
				return
			}
			defer busy.leave(key.KeyID)
		}
		defer busy.leave(key.id())
		if key.Unseen {
			d.touch(r, *key)
		}
		next.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), *key)))
	})
}

// touch records the use of a key. A failure does not affect the request.
func (d *Server) touch(r *http.Request, key Key) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	if err := d.Store.TouchAPIKey(ctx, key.WorkspaceID, key.KeyID); err != nil {
		d.Log.Warn("admin.use_not_noted", "workspace_id", key.WorkspaceID, "key_id", key.KeyID, "error", err)
	}
}

// resolve returns nil if the request has neither a valid key nor a session.
func (d *Server) resolve(r *http.Request) (key *Key, refused *problem.Problem, err error) {
	if d.Sessions == nil || r.Header.Get("Authorization") != "" {
		key, err = d.resolveKey(r)
		return key, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	return d.Sessions(r.WithContext(ctx))
}

func (d *Server) resolveKey(r *http.Request) (*Key, error) {
	scheme, secret, found := strings.Cut(r.Header.Get("Authorization"), " ")
	secret = strings.TrimSpace(secret)
	if !found || !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	key, err := d.Store.ResolveAPIKey(ctx, TokenHash(secret))
	if err != nil {
		return nil, fmt.Errorf("resolve api key: %w", err)
	}
	return key, nil
}

// counter counts the running requests of each key.
type counter struct {
	mu sync.Mutex
	of map[string]int
}

// enter returns how many requests of the key run now, with this one unless the key has too many.
func (c *counter) enter(key string) (running int, entered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[key] >= keyConcurrency {
		return c.of[key], false
	}
	c.of[key]++
	return c.of[key], true
}

func (c *counter) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[key]--; c.of[key] == 0 {
		delete(c.of, key)
	}
}
