package youtube

import (
	"slices"
	"time"
)

// Charge is an entry of a project's quota log.
type Charge struct {
	At      time.Time
	Project string
	Call    string
	// Bucket is "units", "uploads" or "searches".
	Bucket string
	Cost   int
}

// Charges returns the quota log of all projects, oldest entry first.
func (s *Server) Charges() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// SetQuotas changes the quotas and resets their use.
func (s *Server) SetQuotas(q Quotas) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quotas = q
	clear(s.spent)
}

var california = func() *time.Location {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		// Impossible: the zone is embedded.
		panic("youtube simulator: " + err.Error())
	}
	return zone
}()

// quotaDay is the name of the quota day, which starts at midnight in California. A faster pace divides
// it into shorter days.
func (s *Server) quotaDay(now time.Time) string {
	local := now.In(california)
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, california)
	length := s.core.Pace.Of(24 * time.Hour)
	if s.core.Pace.Factor() >= 1 {
		return midnight.Format(time.DateOnly)
	}
	return midnight.Add(now.Sub(midnight).Truncate(length)).Format(time.RFC3339Nano)
}

// spend charges a call to a quota of its project. A call over the quota is refused and costs nothing. The
// bucket of uploads has a refusal of its own form.
func (s *Server) spend(p *project, name, bucket string, cost int) *refusal {
	limit := map[string]int{"units": s.quotas.Units, "uploads": s.quotas.Uploads, "searches": s.quotas.Searches}[bucket]
	now := time.Now()
	key := p.ID + " " + bucket + " " + s.quotaDay(now)
	if limit > 0 && s.spent[key]+cost > limit {
		if bucket == "uploads" {
			return uploadsPerDay(p)
		}
		return because("quotaExceeded")
	}
	s.spent[key] += cost
	s.charges = append(s.charges, Charge{At: now, Project: p.ID, Call: name, Bucket: bucket, Cost: cost})
	return nil
}

// uploadsPerDay is the refusal of an exhausted bucket of uploads.
func uploadsPerDay(p *project) *refusal {
	r := because("rateLimitExceeded")
	r.domain, r.canonicalStatus = "global", ""
	r.message = "Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day' of service " +
		"'youtube.googleapis.com' for consumer 'project_number:" + p.ID + "'."
	return r
}

// countUpload counts a video against the daily limit of its channel.
func (s *Server) countUpload(c *channel) *refusal {
	key := c.ID + " channel " + s.quotaDay(time.Now())
	if c.Uploads > 0 && s.spent[key] >= c.Uploads {
		return because("uploadLimitExceeded")
	}
	s.spent[key]++
	return nil
}
