package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/test/house"
)

// arrivals pushes posts to the workspace quiet, one after another, and returns how long each
// took from the answer of the door to its call, the longest last.
func arrivals(h *house.House, d *house.Daemon, chat, name string, posts int) []time.Duration {
	took := make([]time.Duration, 0, posts)
	for n := range posts {
		before := len(h.Sends(sim.Filter{Chat: chat}))
		h.Push(d, "secret-quiet", house.Post("text", fmt.Sprintf("%s %d", name, n)))
		answered := time.Now()
		var sends []sim.Entry
		h.Until("the post arrives", 20*time.Second, func() bool {
			sends = h.Sends(sim.Filter{Chat: chat})
			return len(sends) > before
		})
		took = append(took, sends[before].Start.Sub(answered))
	}
	slices.Sort(took)
	return took
}

// While one platform never answers and one workspace has a queue of hours, the posts
// of another go out as before.
func TestNobodyElseWaitsForADeadPlatformOrALongQueue(t *testing.T) {
	const posts = 20
	for name, trouble := range map[string]func(h *house.House, d *house.Daemon){
		"a dead platform": func(h *house.House, d *house.Daemon) {
			h.Fault(sim.Fault{Platform: house.Telegram, Effect: sim.EffectHang})
			for n := range 4 {
				h.Push(d, "secret-loud", house.Post("text", fmt.Sprint("Nobody answers ", n)))
			}
			h.Until("calls hang", 20*time.Second, func() bool { return len(h.Sends(sim.Filter{Platform: house.Telegram})) >= 10 })
		},
		"a long queue": func(h *house.House, d *house.Daemon) {
			h.GroupRate("loud", house.Telegram, house.Telegram, 30)
			for n := range 50 {
				h.Push(d, "secret-loud", house.Post("text", fmt.Sprint("One of very many ", n)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := house.New(t)
			h.Workspace("loud")
			h.Endpoint("loud", "cms", "secret-loud")
			for n := range 40 {
				h.Channel("loud", house.Channel{ID: fmt.Sprint("t", n), Platform: house.Telegram})
			}
			h.Workspace("quiet")
			h.Endpoint("quiet", "cms", "secret-quiet")
			chat := h.Channel("quiet", house.Channel{ID: "m", Platform: house.MAX})
			d := h.Serve("DISPATCHER_SENDERS=24")
			alone := arrivals(h, d, chat, "alone", posts)
			trouble(h, d)
			meanwhile := arrivals(h, d, chat, "meanwhile", posts)
			t.Logf("median and most: alone %s, %s; meanwhile %s, %s", alone[posts/2], alone[posts-1], meanwhile[posts/2], meanwhile[posts-1])
			// Hours, were it to wait for the others; what is added is for a machine that does other things as well.
			require.Less(t, meanwhile[posts/2], 2*alone[posts/2]+time.Second)
		})
	}
}
