package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/outbound"
)

// quick is how long an operation may take one of whose calls is never answered; patient
// is for those that are answered, however busy the machine.
const (
	quick   = 300 * time.Millisecond
	patient = 20 * time.Second
)

// operation is something that an adapter does with a secret. It says all that came of it to told.
type operation func(ctx context.Context, b *bench, told *telling)

// operations are those that the adapter under test has.
func (b *bench) operations() map[string]operation {
	out := map[string]operation{
		"send": func(ctx context.Context, b *bench, told *telling) { told.send(ctx, b, b.another()) },
	}
	if b.Plain == nil && !b.NoUploads {
		out["send a medium"] = func(ctx context.Context, b *bench, told *telling) {
			told.send(ctx, b, b.withMedia(b.delivery(mediaStep("media-1", 0)), b.notPicture()))
		}
	}
	if _, ok := b.adapter.(autopost.Reconciler); ok {
		out["reconcile"] = func(ctx context.Context, b *bench, told *telling) {
			at := time.Now()
			d := b.plain()
			d.LastCallAt, d.UnknownOutcomes = &at, 1
			d.RenderMeta.Progress.Steps = map[string][]string{}
			for _, ack := range b.emitted {
				d.RenderMeta.Progress.Steps[ack.Step] = ack.IDs
			}
			call := b.call(d)
			call.Emit = told.emit
			told.hear(b.adapter.(autopost.Reconciler).Reconcile(ctx, call))
		}
	}
	if _, ok := b.adapter.(autopost.Checker); ok {
		out["check"] = func(ctx context.Context, b *bench, told *telling) {
			standing, failure := b.adapter.(autopost.Checker).Check(ctx, autopost.NewSecret(b.Secret), []string{b.Target})
			told.hear(standing, failure)
		}
	}
	if b.Refresher != nil {
		out["refresh"] = func(ctx context.Context, b *bench, told *telling) {
			renewed, failure := b.refresher.Refresh(ctx, autopost.NewSecret(b.Secret))
			told.hear(renewed, failure)
		}
	}
	if _, ok := b.refresher.(Exchanger); ok {
		out["exchange"] = func(ctx context.Context, b *bench, told *telling) {
			renewed, failure := b.refresher.(Exchanger).Exchange(ctx, autopost.NewSecret(b.Secret), codeCanary, verifierCanary, "http://127.0.0.1:1/callback")
			told.hear(renewed, failure)
		}
	}
	return out
}

// Exchanger is a refresher that gives a credential for the code of a consent.
type Exchanger interface {
	Exchange(ctx context.Context, app autopost.Secret, code, verifier, redirect string) (autopost.Renewed, *autopost.Error)
}

const (
	codeCanary     = "canary-code-of/a+consent"
	verifierCanary = "canary-verifier-of-a-consent"
)

// testSecrets breaks each call that each operation makes, in every way, by a server that
// gives the secret back in every form, and looks for it in all that is told.
func testSecrets(t *testing.T, h Harness) {
	var seen watch
	for name, run := range newBench(t, h).operations() {
		t.Run(name, func(t *testing.T) {
			canaries := h.canaries()
			if name == "exchange" {
				canaries = append(canaries, codeCanary, verifierCanary)
			}
			healthy, told := probe(t, h, run, patient, 0, nil)
			seen.look(told, canaries, name)
			require.Positive(t, healthy, "%v", told.places()["%+v"])
			for at := 1; at <= healthy; at++ {
				for way, broken := range breaks(canaries, h.Rows) {
					calls, told := probe(t, h, run, patient, at, broken)
					require.GreaterOrEqual(t, calls, at, "a call was never made")
					seen.look(told, canaries, fmt.Sprintf("%s, call %d of %d, %s", name, at, healthy, way))
				}
			}
			_, told = probe(t, h, run, quick, healthy, hang)
			seen.look(told, canaries, name+", no answer in time")
			for way, address := range map[string]string{"refused": closedAddress(t), "untrusted": untrustedServer(t)} {
				b, told := newBench(t, h), &telling{}
				b.connect(t, address)
				run(t.Context(), b, told)
				seen.look(told, canaries, name+", "+way)
			}
		})
	}
	t.Logf("%d paths x %d places: %d leaks", seen.paths, len(seen.places), len(seen.leaks))
	require.Empty(t, seen.leaks[:min(len(seen.leaks), 10)])
}

// probe runs an operation whose call number at is broken, and says how many it made.
func probe(t *testing.T, h Harness, run operation, within time.Duration, at int, broken http.HandlerFunc) (calls int, told *telling) {
	t.Helper()
	b := makeBench(t, h)
	var n atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if int(n.Add(1)) == at {
			broken(w, r)
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
	b.send(t, b.plain()) // so that there is something to be found
	n.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	told = &telling{}
	run(ctx, b, told)
	return int(n.Load()), told
}

// watch counts where it looked and what it saw.
type watch struct {
	paths  int
	places map[string]bool
	leaks  []string
}

func (w *watch) look(told *telling, canaries []string, path string) {
	w.paths++
	if w.places == nil {
		w.places = map[string]bool{}
	}
	for place, text := range told.places() {
		w.places[place] = true
		for _, found := range traces(text, canaries) {
			w.leaks = append(w.leaks, fmt.Sprintf("%s: %q in %s", path, found, place))
		}
	}
}

// canaries are the parts of the secret that must not be told.
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

// breaks are the ways in which a call may go wrong at a server that knows the secrets:
// refusals of each kind with them in every form, those of the platform's table with
// them as they are, and what is no whole answer.
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

// answer gives a whole answer to a request that it read.
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

// raw answers with these very bytes, and ends the connection.
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

// newClient is what an adapter is given to make its calls.
func newClient(t *testing.T) *outbound.Client {
	t.Helper()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}
