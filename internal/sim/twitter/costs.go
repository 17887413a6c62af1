package twitter

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	quarter = 15 * time.Minute
	day     = 24 * time.Hour

	// Prefixes of the headers of a limit.
	userLimit = "x-rate-limit"
	appLimit  = "x-app-limit-24hour"
)

// Limit is the number of calls of a method: of a user and of an app in 15 minutes, and of an app in a
// day. 0 means no limit.
type Limit struct {
	User, App, AppDay int
}

// DefaultLimits returns the published limits by method and path.
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

// SetLimits changes the limits and resets their use.
func (s *Server) SetLimits(limits map[string]Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	clear(s.windows)
}

// window is a fixed window, which starts with its first call.
type window struct {
	until time.Time
	used  int
}

// bucket is a limit of a call.
type bucket struct {
	key    string
	limit  int
	period time.Duration
	prefix string // of its headers; "" for none
}

// spend counts a call against its limits and writes the headers. It returns false for a call over a
// limit, which is not counted.
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
			// An exhausted window of the app replaces the user's in the headers.
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
	// A reset is in whole seconds, rounded up.
	header.Set(prefix+"-reset", strconv.FormatInt(reset.Add(time.Second-1).Unix(), 10))
}

// Prices in millionths of a dollar.
const (
	PricePost        = 15_000
	PricePostWithURL = 200_000
	PriceSummoned    = 10_000
	PriceMetadata    = 5_000
	PriceDelete      = 10_000
	PriceOwnRead     = 1_000
	PriceRead        = 5_000
)

// Charge is an entry of the bill.
type Charge struct {
	At        time.Time
	App, User string
	// Call is the method and path, For the paid item.
	Call, For string
	// MicroDollars is the price in millionths of a dollar.
	MicroDollars int64
}

// Charges returns the bill, oldest entry first.
func (s *Server) Charges() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// SetCredits sets the credits of a known app in millionths of a dollar. Calls without credits are
// answered with 402. New apps have unlimited credits.
func (s *Server) SetCredits(app string, microDollars int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.apps[app]; a != nil {
		a.credits, a.limited = microDollars, true
	}
}

// SetMonthlyCap limits the posts of a known app in a calendar month; 0 means no limit.
func (s *Server) SetMonthlyCap(app string, posts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.apps[app]; a != nil {
		a.monthlyCap = posts
	}
}

// SetSpendCap refuses all calls of a known app until a day, like a reached spending limit. The zero time
// ends the refusals.
func (s *Server) SetSpendCap(app string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.apps[app]; a != nil {
		a.capEnds = until
	}
}

// spent reports whether the spending limit is reached.
func (a *app) spent() bool { return time.Now().Before(a.capEnds) }

// spendCap is the refusal of calls after a reached spending limit.
func (a *app) spendCap() *problem {
	p := named("spend-cap")
	day := a.capEnds.UTC().Format(time.DateOnly)
	p.detail = strings.TrimSuffix(p.detail, ".") + " on " + day + "."
	p.extra = map[string]any{"account_id": 1, "reset_date": day}
	return p
}

func (s *Server) charge(c *call, what string, microDollars int64) {
	s.charges = append(s.charges, Charge{
		At: time.Now(), App: c.app.Name, User: c.user.ID, Call: c.name, For: what, MicroDollars: microDollars,
	})
	c.app.credits -= microDollars
}

// capped reports whether the app reached its monthly cap of posts.
func (a *app) capped() bool {
	if month := time.Now().UTC().Format("2006-01"); month != a.month {
		a.month, a.posted = month, 0
	}
	return a.monthlyCap > 0 && a.posted >= a.monthlyCap
}
