package web

import (
	"net/http"
	"time"

	"autopost/internal/api"
)

// daemonList are the daemons of the installation.
type daemonList struct {
	Items []api.Daemon `json:"items"`
}

// mostSkew is the difference of clocks from which a person should act, as in the alert.
const mostSkew = time.Second

func (l daemonList) title(v *view) string {
	alive := 0
	for _, d := range l.Items {
		if d.Alive {
			alive++
		}
	}
	if alive == 0 {
		return v.t("operations.daemons.nothing")
	}
	return v.n("operations.daemons.title", alive)
}

// differ reports whether living daemons have different configurations.
func (l daemonList) differ() bool {
	configs := map[string]bool{}
	for _, d := range l.Items {
		if d.Alive && d.Config != nil {
			configs[*d.Config] = true
		}
	}
	return len(configs) > 1
}

// skewed reports how far the clock of a daemon is from that of the database, if that is too far.
func skewed(d api.Daemon) (by time.Duration, is bool) {
	if d.SkewMS == nil {
		return 0, false
	}
	by = time.Duration(*d.SkewMS) * time.Millisecond
	return by, by.Abs() > mostSkew
}

func (s *server) daemons(v *view) {
	var list daemonList
	if err := v.get("/daemons", &list); err != nil {
		v.fail(err)
		return
	}
	v.show(http.StatusOK, "daemons", daemonsPage(v, list), daemonsPanel(v, list))
}
