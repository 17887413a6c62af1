package harness

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/wait"
)

// client does not keep connections: a request after a kill must reach the new daemon.
var client = &http.Client{Timeout: wait.Bound, Transport: &http.Transport{DisableKeepAlives: true}}

// Answer is a response of the daemon.
type Answer struct {
	Status int
	Header http.Header
	// Body is the JSON object of the response; nil if the response has another form.
	Body map[string]any
}

// Text returns a string of the body, "" if it is missing.
func (a Answer) Text(key string) string {
	text, _ := a.Body[key].(string)
	return text
}

// Number returns a number of the body, 0 if it is missing.
func (a Answer) Number(key string) int {
	number, _ := a.Body[key].(float64)
	return int(number)
}

// Push sends a body to the push endpoint and fails the test if no answer arrives.
func (h *Harness) Push(d *Daemon, secret, body string) Answer {
	h.t.Helper()
	answer, err := h.TryPush(d.URL, secret, body)
	require.NoError(h.t, err)
	return answer
}

// TryPush is Push, but returns an error if no answer arrives. Any goroutine may call it.
func (h *Harness) TryPush(url, secret, body string) (Answer, error) {
	return h.request(http.MethodPost, url+"/hooks/push", secret, strings.NewReader(body))
}

// Event sends a domain event and fails the test if no answer arrives.
func (h *Harness) Event(d *Daemon, secret, body string) Answer {
	h.t.Helper()
	answer, err := h.request(http.MethodPost, d.URL+"/hooks/events", secret, strings.NewReader(body))
	require.NoError(h.t, err)
	return answer
}

// Get requests a page. Any goroutine may call it.
func (h *Harness) Get(url, key string) (Answer, error) {
	return h.request(http.MethodGet, url, key, nil)
}

func (h *Harness) request(method, url, bearer string, body io.Reader) (Answer, error) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(h.t.Context()), method, url, body)
	if err != nil {
		return Answer{}, err
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	return send(request)
}

// Signed is a push with a signature by the Standard Webhooks specification.
type Signed struct {
	// Path is "WORKSPACE/ENDPOINT".
	Path string
	// ID and At are part of the signature. Key is "whsec_" and base64.
	ID, Key, Body string
	At            time.Time
}

// TrySigned sends a signed push. Any goroutine may call it.
func (h *Harness) TrySigned(url string, s Signed) (Answer, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Key, "whsec_"))
	if err != nil {
		return Answer{}, err
	}
	timestamp := strconv.FormatInt(s.At.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, s.ID+"."+timestamp+"."+s.Body) // a hash accepts every write
	request, err := http.NewRequestWithContext(context.WithoutCancel(h.t.Context()), http.MethodPost, url+"/hooks/push/"+s.Path, strings.NewReader(s.Body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("webhook-id", s.ID)
	request.Header.Set("webhook-timestamp", timestamp)
	request.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return send(request)
}

func send(request *http.Request) (Answer, error) {
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	answer := Answer{Status: response.StatusCode, Header: response.Header}
	if json.Unmarshal(raw, &answer.Body) != nil {
		answer.Body = nil
	}
	return answer, err
}

// Metrics returns the samples of url/metrics by "name{labels}".
func (h *Harness) Metrics(url string) map[string]float64 {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, url+"/metrics", nil)
	require.NoError(h.t, err)
	response, err := client.Do(request)
	require.NoError(h.t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(h.t, http.StatusOK, response.StatusCode)
	read := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			at := strings.LastIndexByte(line, ' ')
			value, err := strconv.ParseFloat(line[at+1:], 64)
			require.NoError(h.t, err, line)
			read[line[:at]] = value
		}
	}
	return read
}

// Post returns a post as JSON. The fields are pairs of name and value.
func Post(fields ...any) string {
	post := map[string]any{}
	for i := 0; i+1 < len(fields); i += 2 {
		post[fields[i].(string)] = fields[i+1]
	}
	raw, err := json.Marshal(post)
	if err != nil {
		// Tests pass strings, numbers, lists and maps only.
		panic(err)
	}
	return string(raw)
}
