package rest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneKey is a Store in which every secret belongs to the same key.
type oneKey struct{ Store }

func (oneKey) ResolveAPIKey(context.Context, string) (*Key, error) {
	return &Key{WorkspaceID: "w", KeyID: "k"}, nil
}

func (oneKey) TouchAPIKey(context.Context, string, string) error { return nil }

// A key may have a limited number of running requests. The next one gets 429 until one of them is answered.
func TestRunningRequestsOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	d := &Server{Store: oneKey{}, Log: slog.New(slog.DiscardHandler)}
	var working sync.WaitGroup
	entered, leave, answered := make(chan struct{}), make(chan struct{}), make(chan int, keyConcurrency+1)
	h := d.Authenticate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
		w.WriteHeader(http.StatusNoContent)
	}))
	ask := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/channels", nil)
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for range keyConcurrency {
		working.Go(func() { answered <- ask().Code })
		<-entered
	}
	refused := ask()
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	require.Equal(t, `"running";q=64;qu="concurrent-requests"`, refused.Header().Get("RateLimit-Policy"))
	require.Equal(t, `"running";r=0`, refused.Header().Get("RateLimit"))
	leave <- struct{}{}
	require.Equal(t, http.StatusNoContent, <-answered)
	working.Go(func() { answered <- ask().Code })
	<-entered
	close(leave)
	working.Wait()
}

func TestRefusalNamesTheRequiredRoles(t *testing.T) {
	t.Parallel()
	viewer := Key{Role: Viewer}
	require.Nil(t, Need{Role: Viewer}.refusal(viewer, "x", false))
	require.Equal(t, "This key has the role viewer. The operation needs approver, or a higher one: operator, owner.", Need{Role: Approver}.refusal(viewer, "x", false).Detail)
	require.Equal(t, "This key has the role viewer. The operation needs owner.", Need{Role: Owner}.refusal(viewer, "x", false).Detail)
}

// A person needs the password again for some operations; a key does not.
func TestSomeOperationsNeedThePasswordAgain(t *testing.T) {
	t.Parallel()
	need := Need{Role: Approver}
	for _, operation := range stepUp {
		require.Contains(t, access, operation)
		require.Nil(t, need.refusal(Key{Role: Owner, InstallationOwner: true}, operation, false))
		require.Nil(t, need.refusal(Key{Role: Owner, UserID: "u", Confirmed: true, InstallationOwner: true}, operation, false))
		require.Equal(t, "urn:autopost:problem:step-up", need.refusal(Key{Role: Owner, UserID: "u"}, operation, false).Type)
	}
	require.Nil(t, need.refusal(Key{Role: Owner, UserID: "u"}, "reject-submission", false))
	for _, operation := range installation {
		require.Equal(t, "urn:autopost:problem:not-allowed", need.refusal(Key{Role: Owner, UserID: "u", Confirmed: true}, operation, false).Type)
	}
}
