// Package control shows the requests that the simulators received, as a page and as JSON, and manages
// fault rules:
//
//	GET /              the page; ?platform= and ?chat= choose a chat
//	GET /log           the entries; ?platform=, ?chat=, ?method=, ?credential= select
//	GET|POST|DELETE /faults   list, add (an object or an array), remove (?id=, else all)
//	GET|PUT /pace      the factor of the platforms' periods: {"factor": 0.01}
//	POST /reset        remove all messages and faults
package control

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"autopost/internal/sim"
)

const maxRules = 1 << 20 // bytes of a POST to /faults

type server struct {
	core  *sim.Core
	reset func()
}

// New returns the handler of the control paths. POST /reset calls reset.
func New(core *sim.Core, reset func()) http.Handler {
	s := &server{core: core, reset: reset}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /log", s.log)
	mux.HandleFunc("GET /faults", s.listFaults)
	mux.HandleFunc("POST /faults", s.addFaults)
	mux.HandleFunc("DELETE /faults", s.removeFaults)
	mux.HandleFunc("GET /pace", s.pace)
	mux.HandleFunc("PUT /pace", s.setPace)
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, _ *http.Request) {
		s.reset()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func (s *server) log(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	entries := s.core.Log.Entries(sim.Filter{
		Platform: q.Get("platform"), Chat: q.Get("chat"), Method: q.Get("method"), Credential: q.Get("credential"),
	})
	if entries == nil {
		entries = []sim.Entry{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"totals": s.core.Log.Totals(), "entries": entries})
}

func (s *server) listFaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.core.Faults.List())
}

// addFaults adds all rules or none.
func (s *server) addFaults(w http.ResponseWriter, r *http.Request) {
	rules, err := readFaults(r.Body)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	for _, f := range rules {
		if err := s.core.Faults.Add(f); err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
	}
	s.listFaults(w, r)
}

func (s *server) pace(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]float64{"factor": s.core.Pace.Factor()})
}

func (s *server) setPace(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Factor float64 `json:"factor"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, maxRules)).Decode(&given)
	if err == nil {
		err = s.core.Pace.Set(given.Factor)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	s.pace(w, r)
}

func readFaults(body io.Reader) ([]sim.Fault, error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxRules))
	if err != nil {
		return nil, fmt.Errorf("read fault rules: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	if !strings.HasPrefix(text, "[") {
		text = "[" + text + "]"
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var rules []sim.Fault
	if err := dec.Decode(&rules); err != nil {
		return nil, fmt.Errorf("decode fault rules: %w", err)
	}
	for i, f := range rules {
		if err := f.Validate(); err != nil {
			return nil, fmt.Errorf("fault rule %d: %w", i+1, err)
		}
	}
	return rules, nil
}

func (s *server) removeFaults(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query().Get("id")
	if given == "" {
		s.core.Faults.Clear()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	id, err := strconv.Atoi(given)
	if err != nil || !s.core.Faults.Remove(id) {
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no fault rule " + given})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone.
	_ = json.NewEncoder(w).Encode(v)
}
