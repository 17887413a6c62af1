package youtube

import (
	"slices"
	"time"
)

// Charge is one line of a project's ledger.
type Charge struct {
	At      time.Time
	Project string
	Call    string
	// Bucket is "units", "uploads" or "searches".
	Bucket string
	Cost   int
}

// Charges returns the ledger of all projects, oldest line first.
func (s *Server) Charges() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// SetQuotas changes the quotas from now on and forgets what was spent.
func (s *Server) SetQuotas(q Quotas) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quotas = q
	clear(s.spent)
}

var california = func() *time.Location {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		// The zone is in the program.
		panic("youtube simulator: " + err.Error())
	}
	return zone
}()

// quotaDay names the day of the quotas: from midnight to midnight in California,
// or, at another pace, so many shorter ones in it.
func (s *Server) quotaDay(now time.Time) string {
	local := now.In(california)
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, california)
	length := s.core.Pace.Of(24 * time.Hour)
	if s.core.Pace.Factor() >= 1 {
		return midnight.Format(time.DateOnly)
	}
	return midnight.Add(now.Sub(midnight).Truncate(length)).Format(time.RFC3339Nano)
}

// spend takes the price of a call from its project's quota, or refuses the call;
// a refused one costs nothing.
func (s *Server) spend(p *project, name, bucket string, cost int) *refusal {
	limit := map[string]int{"units": s.quotas.Units, "uploads": s.quotas.Uploads, "searches": s.quotas.Searches}[bucket]
	now := time.Now()
	key := p.ID + " " + bucket + " " + s.quotaDay(now)
	if limit > 0 && s.spent[key]+cost > limit {
		return because("quotaExceeded")
	}
	s.spent[key] += cost
	s.charges = append(s.charges, Charge{At: now, Project: p.ID, Call: name, Bucket: bucket, Cost: cost})
	return nil
}

// countUpload counts a video against its channel's own limit.
func (s *Server) countUpload(c *channel) *refusal {
	key := c.ID + " channel " + s.quotaDay(time.Now())
	if c.Uploads > 0 && s.spent[key] >= c.Uploads {
		return because("uploadLimitExceeded")
	}
	s.spent[key]++
	return nil
}
