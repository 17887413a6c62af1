package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/outbound"
	"autopost/internal/testing/wait"
)

// quick bounds an operation with a call that is never answered; patient bounds the others.
const (
	quick   = 300 * time.Millisecond
	patient = wait.Bound
)

// operation is an action of an adapter that uses a secret. It passes all results to got.
type operation func(ctx context.Context, b *bench, got *results)

// operations returns the operations of the adapter under test.
func (b *bench) operations() map[string]operation {
	out := map[string]operation{
		"send": func(ctx context.Context, b *bench, got *results) { got.send(ctx, b, b.another()) },
	}
	if b.Plain == nil && !b.NoUploads {
		out["send a medium"] = func(ctx context.Context, b *bench, got *results) {
			got.send(ctx, b, b.withMedia(b.delivery(mediaStep("media-1", 0)), b.notPicture()))
		}
	}
	if _, ok := b.adapter.(autopost.Reconciler); ok {
		out["reconcile"] = func(ctx context.Context, b *bench, got *results) {
			at := time.Now()
			d := b.plain()
			d.LastCallAt, d.UnknownOutcomes, d.KnownPosts = &at, 1, &autopost.KnownPosts{Before: []string{"1"}}
			if b.LookupSettings != "" {
				d.Settings = json.RawMessage(b.LookupSettings)
			}
			d.RenderMeta.Progress.Steps = map[string][]string{}
			for _, ack := range b.emitted {
				d.RenderMeta.Progress.Steps[ack.Step] = ack.IDs
			}
			call := b.call(d)
			call.Emit = got.emit
			got.add(b.adapter.(autopost.Reconciler).Reconcile(ctx, call))
		}
	}
	if _, ok := b.adapter.(autopost.Checker); ok {
		out["check"] = func(ctx context.Context, b *bench, got *results) {
			standing, failure := b.adapter.(autopost.Checker).Check(ctx, autopost.NewSecret(b.Secret), []string{b.Target})
			got.add(standing, failure)
		}
	}
	if _, ok := b.adapter.(autopost.Uploader); ok {
		out["upload"] = func(ctx context.Context, b *bench, got *results) {
			uploaded, failure := b.adapter.(autopost.Uploader).Upload(ctx, autopost.Upload{Secret: autopost.NewSecret(b.Secret), Media: b.media, Medium: b.medium(b.notPicture())})
			got.add(uploaded, failure)
		}
	}
	if b.Refresher != nil {
		out["refresh"] = func(ctx context.Context, b *bench, got *results) {
			renewed, failure := b.refresher.Refresh(ctx, autopost.NewSecret(b.Secret))
			got.add(renewed, failure)
		}
	}
	if _, ok := b.refresher.(Exchanger); ok {
		out["exchange"] = func(ctx context.Context, b *bench, got *results) {
			renewed, failure := b.refresher.(Exchanger).Exchange(ctx, autopost.NewSecret(b.Secret), codeCanary, verifierCanary, "http://127.0.0.1:1/callback")
			got.add(renewed, failure)
		}
	}
	return out
}

// Exchanger is a refresher that exchanges the code of a consent for a credential.
type Exchanger interface {
	Exchange(ctx context.Context, app autopost.Secret, code, verifier, redirect string) (autopost.Renewed, *autopost.Error)
}

const (
	codeCanary     = "canary-code-of/a+consent"
	verifierCanary = "canary-verifier-of-a-consent"
)

// testSecrets breaks each call of each operation in every way, with a server that returns the secret in
// every form, and searches all results for it.
func testSecrets(t *testing.T, h Harness) {
	var seen leakCheck
	operations := newBench(t, h).operations()
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		run := operations[name]
		t.Run(name, func(t *testing.T) {
			canaries := h.canaries()
			if name == "exchange" {
				canaries = append(canaries, codeCanary, verifierCanary)
			}
			healthy, got := probe(t, h, run, fault{within: patient})
			seen.search(got, canaries, name)
			require.Positive(t, healthy, "%v", got.outputs()["%+v"])
			ways := breaks(canaries, h.Rows)
			for at := 1; at <= healthy; at++ {
				for _, way := range seen.sample(slices.Sorted(maps.Keys(ways))) {
					calls, got := probe(t, h, run, fault{at, ways[way], patient})
					require.GreaterOrEqual(t, calls, at, "the call was not made")
					seen.search(got, canaries, fmt.Sprintf("%s, call %d of %d, %s", name, at, healthy, way))
				}
			}
			_, got = probe(t, h, run, fault{healthy, hang, quick})
			seen.search(got, canaries, name+", no answer in time")
			for way, address := range map[string]string{"refused": closedAddress(t), "untrusted": untrustedServer(t)} {
				b, got := newBench(t, h), &results{}
				b.connect(t, address)
				run(t.Context(), b, got)
				seen.search(got, canaries, name+", "+way)
			}
		})
	}
	t.Logf("%d paths x %d outputs: %d leaks", seen.paths, len(seen.outputs), len(seen.leaks))
	require.Empty(t, seen.leaks[:min(len(seen.leaks), 10)])
}

// fault is the answer to one call of an operation.
type fault struct {
	// call is the number of the call, from 1; 0 means that every call succeeds.
	call   int
	answer http.HandlerFunc
	// within bounds the operation.
	within time.Duration
}

// probe runs an operation with a fault. It returns the number of calls.
func probe(t *testing.T, h Harness, run operation, f fault) (calls int, got *results) {
	t.Helper()
	b := makeBench(t, h)
	var n atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if int(n.Add(1)) == f.call {
			f.answer(w, r)
			return
		}
		b.handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = quiet()
	server.Start()
	defer server.Close()
	defer server.CloseClientConnections()
	b.connect(t, server.URL)
	n.Store(-1 << 32)
	b.send(t, b.plain()) // a post that can be found
	n.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), f.within)
	defer cancel()
	got = &results{}
	run(ctx, b, got)
	return int(n.Load()), got
}

// leakCheck counts the searched outputs and collects leaks.
type leakCheck struct {
	samples int // number of samples until now
	paths   int
	outputs map[string]bool
	leaks   []string
}

// sampleStride is the distance between two chosen ways. The samples of ten calls contain every way.
const sampleStride = 10

// sample returns every tenth way, starting at another one each time; at full size (make test-long) all ways.
func (w *leakCheck) sample(ways []string) []string {
	if os.Getenv("AUTOPOST_LONG") != "" {
		return ways
	}
	var chosen []string
	for i := w.samples % sampleStride; i < len(ways); i += sampleStride {
		chosen = append(chosen, ways[i])
	}
	w.samples++
	return chosen
}

func (w *leakCheck) search(got *results, canaries []string, path string) {
	w.paths++
	if w.outputs == nil {
		w.outputs = map[string]bool{}
	}
	for output, text := range got.outputs() {
		w.outputs[output] = true
		for _, found := range traces(text, canaries) {
			w.leaks = append(w.leaks, fmt.Sprintf("%s: %q in %s", path, found, output))
		}
	}
}

// canaries returns the parts of the secret that must not be revealed.
func (h Harness) canaries() []string {
	var out []string
	var object map[string]string
	switch _, proper, ok := strings.Cut(h.Secret, ":"); {
	case json.Unmarshal([]byte(h.Secret), &object) == nil:
		for name, value := range object {
			if name != "client_id" {
				out = append(out, value)
			}
		}
	case ok:
		out = append(out, proper)
	default:
		out = append(out, h.Secret)
	}
	slices.Sort(out)
	return out
}

// breaks are the faults of a server that knows the secrets: errors of each kind with the secrets in
// every form, those of the platform's table with plain secrets, and incomplete answers.
func breaks(canaries []string, rows []Row) map[string]http.HandlerFunc {
	out := map[string]http.HandlerFunc{}
	all := strings.Join(canaries, " ")
	for form, escape := range escapes {
		statuses := []int{200, 401, 503}
		if form == plain {
			statuses = append(statuses, 302, 400, 429, 500)
			for _, row := range rows {
				statuses = append(statuses, row.Status)
			}
		}
		for shell, dress := range shells {
			for _, status := range statuses {
				out[fmt.Sprintf("%d %s in %s", status, form, shell)] = answer(status, dress(escape(canaries)))
			}
		}
		out["headers "+form] = func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{"Location", "Range", "Retry-After", "Www-Authenticate", "X-Rate-Limit-Reset", "Date"} {
				w.Header().Set(name, escape(canaries))
			}
			w.WriteHeader(http.StatusPermanentRedirect)
		}
	}
	out["redirect"] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere/"+escapes["path"](canaries), http.StatusTemporaryRedirect)
	}
	out["address that cannot be read"] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://%zz/"+all)
		w.WriteHeader(http.StatusOK)
	}
	out["huge"] = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		for range 2<<20/len(all) + 1 {
			_, _ = io.WriteString(w, all)
		}
	}
	for i, canary := range canaries {
		for _, status := range []int{200, 400, 503} {
			out[fmt.Sprintf("%d cut within canary %d", status, i)] = raw(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 9000\r\n\r\n{\"description\":\"%s", status, canary[:len(canary)-1]))
		}
	}
	out["no answer"] = raw("")
	out["no HTTP"] = raw(all + "\r\n\r\n")
	out["a status of its own"] = raw("HTTP/1.1 4" + all + "\r\n\r\n")
	out["broken header"] = raw("HTTP/1.1 200 OK\r\n" + all + "\r\n\r\n")
	out["broken chunks"] = raw("HTTP/1.1 401 X\r\nTransfer-Encoding: chunked\r\n\r\n" + all)
	return out
}

// answer returns a complete answer.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// raw returns exactly these bytes and closes the connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, answer)
		_ = conn.Close()
	}
}

func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return "http://" + listener.Addr().String()
}

func untrustedServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// newClient returns the HTTP client for the adapter under test.
func newClient(t *testing.T) *outbound.Client {
	t.Helper()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// quiet is a logger for servers whose errors the tests provoke.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
