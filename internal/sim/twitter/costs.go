package twitter

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	quarter = 15 * time.Minute
	day     = 24 * time.Hour

	// The headers of a limit begin with these.
	userLimit = "x-rate-limit"
	appLimit  = "x-app-limit-24hour"
)

// Limit is how many calls of one kind are taken: of a user and of an app in a
// quarter of an hour, and of an app in a day. 0 is no limit.
type Limit struct {
	User, App, AppDay int
}

// DefaultLimits are the published ones, by method and path.
func DefaultLimits() map[string]Limit {
	upload := Limit{User: 1875, AppDay: 180_000}
	return map[string]Limit{
		"POST /2/tweets":                     {User: 100, AppDay: 10_000},
		"DELETE /2/tweets/{id}":              {User: 50},
		"GET /2/tweets/{id}":                 {User: 900, App: 450},
		"GET /2/users/{id}/tweets":           {User: 900, App: 10_000},
		"GET /2/users/me":                    {User: 75},
		"POST /2/media/upload":               {User: 500, AppDay: 50_000},
		"POST /2/media/upload/initialize":    upload,
		"POST /2/media/upload/{id}/append":   upload,
		"POST /2/media/upload/{id}/finalize": upload,
		"GET /2/media/upload":                {User: 1000, AppDay: 100_000},
		"POST /2/media/metadata":             {User: 500, AppDay: 50_000},
	}
}

// SetLimits changes the limits from now on and forgets what was spent.
func (s *Server) SetLimits(limits map[string]Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	clear(s.windows)
}

// window is a fixed window; it begins with its first call.
type window struct {
	until time.Time
	used  int
}

// bucket is one limit that a call counts against.
type bucket struct {
	key    string
	limit  int
	period time.Duration
	prefix string // of its headers; "" has none
}

// spend counts a call against its limits and writes the headers. It reports
// whether the call may go on; one that may not costs nothing.
func (s *Server) spend(name string, c *call) bool {
	of := s.limits[name]
	buckets := []bucket{
		{"user " + c.user.ID, of.User, quarter, userLimit},
		{"app " + c.app.Name, of.App, quarter, ""},
		{"day " + c.app.Name, of.AppDay, day, appLimit},
	}
	now := time.Now()
	free := true
	for _, b := range buckets {
		free = free && (b.limit == 0 || s.window(name+" "+b.key, b.period, now).used < b.limit)
	}
	for _, b := range buckets {
		if b.limit == 0 {
			continue
		}
		w := s.window(name+" "+b.key, b.period, now)
		if free {
			w.used++
		}
		prefix := b.prefix
		if prefix == "" && w.used >= b.limit {
			// A full app window shows in the place of the user's.
			prefix = userLimit
		}
		if prefix != "" {
			writeLimit(c.header, prefix, b.limit, b.limit-w.used, w.until)
		}
	}
	return free
}

func (s *Server) window(key string, period time.Duration, now time.Time) *window {
	w := s.windows[key]
	if w == nil || !now.Before(w.until) {
		w = &window{until: now.Add(s.core.Pace.Of(period))}
		s.windows[key] = w
	}
	return w
}

func writeLimit(header http.Header, prefix string, limit, remaining int, reset time.Time) {
	header.Set(prefix+"-limit", strconv.Itoa(limit))
	header.Set(prefix+"-remaining", strconv.Itoa(remaining))
	// A reset is in whole seconds and never early.
	header.Set(prefix+"-reset", strconv.FormatInt(reset.Add(time.Second-1).Unix(), 10))
}

// The prices of a call, in millionths of a dollar.
const (
	PricePost        = 15_000
	PricePostWithURL = 200_000
	PriceSummoned    = 10_000
	PriceMetadata    = 5_000
	PriceDelete      = 10_000
	PriceOwnRead     = 1_000
	PriceRead        = 5_000
)

// Charge is one line of the bill.
type Charge struct {
	At        time.Time
	App, User string
	// Call is the method and path, For what is paid.
	Call, For string
	// MicroDollars is the price in millionths of a dollar.
	MicroDollars int64
}

// Charges returns the bill, oldest line first.
func (s *Server) Charges() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// SetCredits gives a known app so many millionths of a dollar to spend; a call
// that finds none left is answered 402. An app has no end of credits before.
func (s *Server) SetCredits(app string, microDollars int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.apps[app]; a != nil {
		a.credits, a.limited = microDollars, true
	}
}

// SetMonthlyCap limits how many posts a known app makes in a calendar month; 0 is no limit.
func (s *Server) SetMonthlyCap(app string, posts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.apps[app]; a != nil {
		a.monthlyCap = posts
	}
}

func (s *Server) charge(c *call, what string, microDollars int64) {
	s.charges = append(s.charges, Charge{
		At: time.Now(), App: c.app.Name, User: c.user.ID, Call: c.name, For: what, MicroDollars: microDollars,
	})
	c.app.credits -= microDollars
}

// capped reports whether the app has made its posts of this month.
func (a *app) capped() bool {
	if month := time.Now().UTC().Format("2006-01"); month != a.month {
		a.month, a.posted = month, 0
	}
	return a.monthlyCap > 0 && a.posted >= a.monthlyCap
}
