package door

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneKey knows every secret as the same key.
type oneKey struct{}

func (oneKey) ResolveAPIKey(context.Context, string) (*Key, error) {
	return &Key{WorkspaceID: "w", KeyID: "k"}, nil
}

func (oneKey) TouchAPIKey(context.Context, string, string) error { return nil }

// A key may have so many requests under way; the next is told to wait, until one is answered.
func TestRequestsOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	d := &Door{Keys: oneKey{}, Log: slog.New(slog.DiscardHandler)}
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
	leave <- struct{}{}
	require.Equal(t, http.StatusNoContent, <-answered)
	working.Go(func() { answered <- ask().Code })
	<-entered
	close(leave)
	working.Wait()
}

func TestARefusalNamesTheRolesThatMay(t *testing.T) {
	t.Parallel()
	viewer := Key{Role: Viewer}
	require.Nil(t, Need{Role: Viewer}.refusal(viewer))
	require.Equal(t, "This key has the role viewer. The operation needs approver, or one that may more: operator, owner.", Need{Role: Approver}.refusal(viewer).Detail)
	require.Equal(t, "This key has the role viewer. The operation needs owner.", Need{Role: Owner}.refusal(viewer).Detail)
}
