package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/outbound"
)

const token = `42:sec"ret/part value`

func TestRedactorRemovesEveryFormOfTheSecret(t *testing.T) {
	hide := adapter.Hide(autopost.NewSecret(token))
	for _, text := range []string{
		"call /bot" + token + "/send", `only sec"ret/part value`, `path 42:sec%22ret%2Fpart%20value`,
		`query sec%22ret%2Fpart+value`, `json "sec\"ret/part value"`,
	} {
		require.NotContains(t, hide.Text(text), "ret/part", text)
		require.NotContains(t, hide.Text(text), "ret%2Fpart", text)
		require.Contains(t, hide.Text(text), "[redacted]", text)
	}
	several := adapter.Hide(autopost.NewSecret("part"), autopost.Secret{}, autopost.NewSecret("the part of a whole"))
	require.Equal(t, "[redacted], [redacted]", several.Text("part, the part of a whole"))
	require.Equal(t, "as it is", adapter.Redactor{}.Text("as it is"))
	require.Equal(t, "as it is", adapter.Hide(autopost.Secret{}).Text("as it is"))
}

func TestRawIsStorableJSONWithoutTheSecret(t *testing.T) {
	hide := adapter.Hide(autopost.NewSecret("abc:TOPSECRET"))
	for name, body := range map[string]string{
		"object":         `{"ok":false,"seq":116327994376978687,"description":"TOPSECRET"}`,
		"escaped secret": `{"description":"\u0054OPSECRET"}`,
		"html":           "<html>TOPSECRET</html>",
		"long object":    `{"x":"` + strings.Repeat("<я>", 3000) + `TOPSECRET"}`,
		"long quotes":    strings.Repeat(`"\`, 3000),
		"nul in json":    `{"x":"a\u0000b"}`,
		"nul in text":    "a\x00b",
		"broken utf-8":   "a\xffb",
		"lone surrogate": `{"x":"\ud800"}`,
		"huge number":    `{"x":1e400000}`,
		"two documents":  `{} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			raw := hide.Raw([]byte(body))
			require.True(t, json.Valid(raw), "%s", raw)
			require.LessOrEqual(t, len(raw), 2<<10)
			require.NotContains(t, string(raw), "TOPSECRET")
			require.NotContains(t, string(raw), `\ud800`)
			var value any
			require.NoError(t, json.Unmarshal(raw, &value), "a double holds every number")
			require.NotContains(t, fmt.Sprint(value), "\x00")
		})
	}
	require.Nil(t, hide.Raw(nil))
	require.JSONEq(t, `{"seq":116327994376978687}`, string(hide.Raw([]byte(`{"seq":116327994376978687}`))))
	require.Contains(t, string(hide.Raw([]byte(`{"seq":116327994376978687}`))), "116327994376978687")
}

func TestBaseline(t *testing.T) {
	for status, want := range map[int]string{
		302: "PERMANENT/platform p_302", 400: "PERMANENT/delivery validation_failed", 401: "PERMANENT/channel p_401",
		403: "PERMANENT/channel p_403", 404: "PERMANENT/channel p_404", 405: "PERMANENT/platform p_405",
		408: "TRANSIENT/platform p_408", 413: "PERMANENT/delivery media_too_large", 418: "PERMANENT/delivery p_418",
		429: "TRANSIENT/channel p_429", 500: "TRANSIENT/platform p_5xx", 503: "TRANSIENT/platform p_5xx",
	} {
		rule := adapter.Baseline("p", status)
		require.Equal(t, want, fmt.Sprintf("%s/%s %s", rule.Category, rule.Scope, rule.Code))
	}
}

func TestWaitsInSecondsAndAsDates(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "soon": 0, "-1": 0, "0": 0, " 7 ": 7000, "9223372036854775807": 31_536_000_000,
		"Sun, 06 Nov 1994 08:51:37 GMT": 120_000, "Sun, 06 Nov 1994 08:49:36 GMT": 0, "Sun, 06 Nov 2094 08:49:37 GMT": 31_536_000_000,
	} {
		header := http.Header{"Retry-After": {text}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}}
		require.Equal(t, want, adapter.Answer{Header: header}.RetryAfterMS(), text)
	}
	require.Zero(t, adapter.Answer{Header: http.Header{"Retry-After": {"Sun, 06 Nov 2094 08:49:37 GMT"}}}.RetryAfterMS(), "without Date there is no start")
}

// stream is content that is read in pieces. It counts calls of Close.
type stream struct {
	io.ReadSeeker
	closed int
}

func (s *stream) Close() error { s.closed++; return nil }

func content(text string, size int64) (*autopost.Content, *stream) {
	s := &stream{ReadSeeker: strings.NewReader(text)}
	return &autopost.Content{ReadSeekCloser: s, Size: size, ContentType: "image/png", Filename: "a.png"}, s
}

func TestFormStreamsWithAnExactLength(t *testing.T) {
	type got struct {
		Length        int64
		Chunked       bool
		Field, File   string
		Name, Content string
	}
	seen := make(chan got, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		file, header, err := r.FormFile("f0")
		if err != nil {
			seen <- got{}
			return
		}
		bytes, _ := io.ReadAll(file)
		seen <- got{r.ContentLength, len(r.TransferEncoding) > 0, r.FormValue("chat_id"), string(bytes), header.Filename, header.Header.Get("Content-Type")}
	}))
	t.Cleanup(server.Close)
	form := adapter.NewForm()
	form.Field("chat_id", "-100")
	c, s := content("pixels", 6)
	form.File("f0", c)
	req := request(t, server.URL)
	form.Attach(req)
	_, failure := adapter.Exchange(client(t), req, adapter.Redactor{})
	require.Nil(t, failure)
	require.Empty(t, cmp.Diff(got{req.ContentLength, false, "-100", "pixels", "a.png", "image/png"}, <-seen))
	require.Positive(t, req.ContentLength)
	require.Equal(t, 1, s.closed)
}

func TestContentThatEndsEarlyFailsTheCall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(server.Close)
	form := adapter.NewForm()
	c, s := content("short", 1<<20)
	form.File("f0", c)
	req := request(t, server.URL)
	form.Attach(req)
	_, failure := adapter.Exchange(client(t), req, adapter.Redactor{})
	require.NotNil(t, failure)
	require.Contains(t, []string{autopost.CodeUnknownOutcome, adapter.CodeOriginUnavailable}, failure.Code)
	require.Equal(t, 1, s.closed)
}

func request(t *testing.T, address string) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	require.NoError(t, err)
	return req
}

func client(t *testing.T) *outbound.Client {
	t.Helper()
	c, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestExchangeClassifiesTransportErrors(t *testing.T) {
	hijack := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		code    string
	}{
		"closed without an answer": {hijack(""), autopost.CodeUnknownOutcome},
		"200 cut short":            {hijack("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), autopost.CodeUnknownOutcome},
		"503 cut short":            {hijack("HTTP/1.1 503 No\r\nContent-Length: 99\r\n\r\n{"), autopost.CodeUnknownOutcome},
		"400 cut short":            {hijack("HTTP/1.1 400 No\r\nContent-Length: 99\r\n\r\n{"), ""},
		"endless 200": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
		}, autopost.CodeUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			t.Cleanup(server.Close)
			_, failure := adapter.Exchange(client(t), request(t, server.URL), adapter.Redactor{})
			if c.code == "" {
				require.Nil(t, failure)
				return
			}
			require.NotNil(t, failure)
			require.Equal(t, c.code, failure.Code)
			require.False(t, failure.Known)
		})
	}
	t.Run("an error of another kind", func(t *testing.T) {
		_, failure := adapter.Exchange(doer(func() error { return errors.New("odd") }), request(t, "http://127.0.0.1:1"), adapter.Redactor{})
		require.Equal(t, autopost.CodeUnknownOutcome, failure.Code)
	})
}

type doer func() error

func (d doer) Do(*http.Request) (*http.Response, error) { return nil, d() }

func TestRunSkipsDoneStepsAndEmitsAllButTheLast(t *testing.T) {
	steps := []autopost.Step{{Name: "text", Text: true}, {Name: "m1", Items: []int{0, 1}}, {Name: "m2", Items: []int{2}}}
	first := time.Unix(1_800_000_000, 0).UTC()
	var sent []string
	var emitted []autopost.Acknowledged
	call := autopost.Call{
		Delivery: autopost.Delivery{RenderMeta: autopost.RenderMeta{
			Steps:    steps,
			Progress: autopost.SeriesProgress{Steps: map[string][]string{"text": {"7"}}},
		}},
		Emit: func(_ context.Context, a autopost.Acknowledged) error { emitted = append(emitted, a); return nil },
	}
	outcome := adapter.Run(t.Context(), call, func(_ context.Context, step autopost.Step, _ string) (adapter.Receipt, *autopost.Error) {
		sent = append(sent, step.Name)
		return adapter.Receipt{IDs: []string{step.Name + "-a", step.Name + "-b"}, SentAt: first.Add(time.Duration(len(sent)-1) * time.Second)}, nil
	})
	require.True(t, outcome.OK)
	require.Equal(t, []string{"m1", "m2"}, sent)
	require.Equal(t, []autopost.Acknowledged{{Step: "m1", IDs: []string{"m1-a", "m1-b"}, Items: []int{0, 1}}}, emitted)
	require.Equal(t, "7", outcome.ProviderMessageID)
	require.Equal(t, first, *outcome.SentAt)
	require.JSONEq(t, `{"ids":["7","m1-a","m1-b","m2-a","m2-b"],"steps":{"text":["7"],"m1":["m1-a","m1-b"],"m2":["m2-a","m2-b"]}}`, string(outcome.Raw))
}

func TestAsideStepMakesNoMessage(t *testing.T) {
	steps := []autopost.Step{{Name: "session", Aside: true}, {Name: "video"}, {Name: "thumbnail", Aside: true}}
	call := autopost.Call{
		Delivery: autopost.Delivery{RenderMeta: autopost.RenderMeta{Steps: steps}},
		Emit:     func(context.Context, autopost.Acknowledged) error { return nil },
	}
	name := func(_ context.Context, step autopost.Step, _ string) (adapter.Receipt, *autopost.Error) {
		return adapter.Receipt{IDs: []string{"id of " + step.Name}}, nil
	}
	outcome := adapter.Run(t.Context(), call, name)
	require.Equal(t, "id of video", outcome.ProviderMessageID)
	require.JSONEq(t, `{"ids":["id of video"],"steps":{"session":["id of session"],"video":["id of video"],"thumbnail":["id of thumbnail"]}}`, string(outcome.Raw))

	call.Emit = func(context.Context, autopost.Acknowledged) error { return errors.New("lost") }
	outcome = adapter.Run(t.Context(), call, name)
	require.True(t, outcome.Error.Known, "it may be repeated")
	require.Equal(t, adapter.CodeNotRecorded, outcome.Error.Code)
}

// The engine has the id of a post of one message. The outcome has no copy of it as the answer of the platform.
func TestRunReturnsNoCopyOfTheOnlyID(t *testing.T) {
	for _, ids := range [][]string{{"7"}, {"7", "8"}} {
		call := autopost.Call{Delivery: autopost.Delivery{RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "a", Text: true}}}}}
		outcome := adapter.Run(t.Context(), call, func(context.Context, autopost.Step, string) (adapter.Receipt, *autopost.Error) {
			return adapter.Receipt{IDs: ids}, nil
		})
		require.Equal(t, "7", outcome.ProviderMessageID)
		require.Equal(t, len(ids) == 1, outcome.Raw == nil)
	}
}

func TestRunStops(t *testing.T) {
	steps := []autopost.Step{{Name: "a", Text: true}, {Name: "b", Items: []int{0}}}
	ok := func(_ context.Context, step autopost.Step, _ string) (adapter.Receipt, *autopost.Error) {
		return adapter.Receipt{IDs: []string{step.Name}}, nil
	}
	call := func(steps []autopost.Step, emit func(context.Context, autopost.Acknowledged) error) autopost.Call {
		return autopost.Call{Delivery: autopost.Delivery{RenderMeta: autopost.RenderMeta{Steps: steps}}, Emit: emit, Secret: autopost.NewSecret("TOPSECRET")}
	}
	t.Run("without steps", func(t *testing.T) {
		outcome := adapter.Run(t.Context(), call(nil, nil), ok)
		require.Equal(t, autopost.CodeValidationFailed, outcome.Error.Code)
	})
	t.Run("when a step cannot be recorded the outcome is unknown and its ids are reported", func(t *testing.T) {
		outcome := adapter.Run(t.Context(), call(steps, func(context.Context, autopost.Acknowledged) error { return errors.New("lost TOPSECRET") }), ok)
		require.False(t, outcome.Error.Known)
		require.Equal(t, autopost.CodeUnknownOutcome, outcome.Error.Code)
		require.JSONEq(t, `{"ids":["a"],"steps":{"a":["a"]}}`, string(outcome.Raw))
		require.NotContains(t, outcome.Error.Message, "TOPSECRET")
	})
	t.Run("when the deadline passes between the steps", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		outcome := adapter.Run(ctx, call(steps, func(context.Context, autopost.Acknowledged) error { cancel(); return nil }), ok)
		require.True(t, outcome.Error.Known)
		require.Equal(t, adapter.CodeNotStarted, outcome.Error.Code)
	})
}

func TestButtonsBelongToTheTextElseToTheFirstStep(t *testing.T) {
	rows := [][]autopost.Button{{{Text: "Open", URL: "https://example.org"}}}
	media, text := autopost.Step{Name: "m"}, autopost.Step{Name: "t", Text: true}
	meta := autopost.RenderMeta{Buttons: rows, Steps: []autopost.Step{media, text}}
	require.Nil(t, adapter.Buttons(meta, media))
	require.Equal(t, rows, adapter.Buttons(meta, text))
	end := autopost.Step{Name: "e", Text: true}
	meta.Steps = []autopost.Step{text, end}
	require.Nil(t, adapter.Buttons(meta, text), "below the last part of a split text")
	require.Equal(t, rows, adapter.Buttons(meta, end))
	meta.Steps = []autopost.Step{media, {Name: "n"}}
	require.Equal(t, rows, adapter.Buttons(meta, media))
	require.Nil(t, adapter.Buttons(meta, meta.Steps[1]))
}

// The last answer of a call is kept whole, without the secret and without cookies. A request without an answer leaves none.
func TestExchangeKeepsTheLastAnswer(t *testing.T) {
	t.Parallel()
	const secret = "123456:canary-of-the-kept-answer"
	long := strings.Repeat("я", 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=cookie-canary")
		w.Header().Set("X-Token", secret)
		w.WriteHeader(http.StatusBadRequest)
		switch r.URL.Path {
		case "/json":
			_, _ = io.WriteString(w, `{"description": "bad \u0063anary-of-the-kept-answer", "n": 1}`)
		case "/long":
			_, _ = io.WriteString(w, long)
		}
	}))
	t.Cleanup(server.Close)
	hide := adapter.Hide(autopost.NewSecret(secret))
	ctx, kept := outbound.WithLastAnswer(t.Context())
	ask := func(address string) map[string]any {
		_, _ = adapter.Exchange(client(t), request(t, address).WithContext(ctx), hide)
		show := kept.Show()
		if show == nil {
			return nil
		}
		text := show()
		require.LessOrEqual(t, len(text), 64_000)
		require.NotContains(t, string(text), "canary")
		var answer map[string]any
		require.NoError(t, json.Unmarshal(text, &answer))
		require.Equal(t, 400.0, answer["status"])
		return answer
	}
	require.Equal(t, map[string]any{"description": "bad [redacted]", "n": 1.0}, ask(server.URL + "/json")["body"])
	answer := ask(server.URL + "/long")
	require.Greater(t, len(answer["body"].(string)), 50_000)
	require.NotContains(t, answer["headers"], "Set-Cookie")
	server.Close()
	require.Nil(t, ask(server.URL+"/json"))
}
