package door

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// keyConcurrency bounds the requests of one key that a daemon works on at once.
const keyConcurrency = 64

// Key is who calls: an API key belongs to one workspace and has one role.
type Key struct {
	WorkspaceID string
	KeyID       string
	Name        string
	Role        string
	// Scopes narrow the role; none: all that the role may do.
	Scopes []string
	// Unseen says that the key's use is to be noted.
	Unseen bool
}

// operator is who acts, for the audit log.
func (k Key) operator() string { return fmt.Sprintf("%s (api key %s)", k.Name, k.KeyID) }

type callerKey struct{}

// Caller is the key by which a request was authenticated.
func Caller(ctx context.Context) Key {
	key, _ := ctx.Value(callerKey{}).(Key)
	return key
}

// Authenticate lets through who bears a valid key, as many at once as a key may have.
func (d *Door) Authenticate(next http.Handler) http.Handler {
	busy := counter{of: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := d.resolve(r)
		if err != nil {
			d.Log.Error("admin.unavailable", "error", err)
			w.Header().Set("Retry-After", ComeAgain)
			WriteProblem(w, NewProblem(http.StatusServiceUnavailable, unavailable))
			return
		}
		if key == nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="autopost"`)
			WriteProblem(w, NewProblem(http.StatusUnauthorized, "No valid API key. Send one as Authorization: Bearer KEY."))
			return
		}
		if !busy.enter(key.KeyID) {
			w.Header().Set("Retry-After", "1")
			WriteProblem(w, NewProblem(http.StatusTooManyRequests, fmt.Sprintf("This key has %d requests under way. Wait for their answers.", keyConcurrency)))
			return
		}
		defer busy.leave(key.KeyID)
		if key.Unseen {
			d.touch(r, *key)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, *key)))
	})
}

// touch notes the use of a key; that it could not is nothing to the caller.
func (d *Door) touch(r *http.Request, key Key) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	if err := d.Keys.TouchAPIKey(ctx, key.WorkspaceID, key.KeyID); err != nil {
		d.Log.Warn("admin.use_not_noted", "workspace_id", key.WorkspaceID, "key_id", key.KeyID, "error", err)
	}
}

// resolve returns nil when the request bears no valid key.
func (d *Door) resolve(r *http.Request) (*Key, error) {
	scheme, secret, found := strings.Cut(r.Header.Get("Authorization"), " ")
	secret = strings.TrimSpace(secret)
	if !found || !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, nil
	}
	hash := sha256.Sum256([]byte(secret))
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	key, err := d.Keys.ResolveAPIKey(ctx, hex.EncodeToString(hash[:]))
	if err != nil {
		return nil, fmt.Errorf("resolve api key: %w", err)
	}
	return key, nil
}

// counter counts the requests of each key that are under way.
type counter struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counter) enter(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[key] >= keyConcurrency {
		return false
	}
	c.of[key]++
	return true
}

func (c *counter) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[key]--; c.of[key] == 0 {
		delete(c.of, key)
	}
}
