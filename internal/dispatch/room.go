package dispatch

import (
	"sync"

	"autopost"
)

// party is with whom a delivery shares the places of this daemon: all of its
// platform, of its workspace there, of its rate group. What a name is missing of is any.
type party struct {
	workspace string
	platform  autopost.Platform
	group     string
}

func partOf(d autopost.Delivery) Part { return Part{d.WorkspaceID, d.Platform} }

func platformOf(d autopost.Delivery) party  { return party{platform: d.Platform} }
func workspaceOf(d autopost.Delivery) party { return partOf(d).workspace() }
func groupOf(d autopost.Delivery) party {
	return party{d.WorkspaceID, d.Platform, d.RateGroup}
}

// share is how many times the free places a party may hold at most. However many
// want all, some stay free for whoever comes next: a group alone gets half of the
// places, a workspace two thirds, a platform four fifths.
func (p party) share() int {
	switch {
	case p.group != "":
		return 1
	case p.workspace != "":
		return 2
	default:
		return 4
	}
}

// claimsAtOnce bounds the claims under way: each has a connection to the database, and
// starts and outcomes of what was claimed want theirs as well.
const claimsAtOnce = 6

// room counts the deliveries in hand, from the claim until the outcome is
// committed, so that no more are claimed than can begin soon, and none takes
// the places of all.
type room struct {
	places int
	// freed holds one hint that there may be room, or a gate re-armed, since it was last read.
	freed chan struct{}

	mu    sync.Mutex
	taken int
	held  map[party]int
	// opened is how many places each claim under way may fill; they are taken meanwhile. closed
	// tells whoever waits for one of them.
	opened map[Part]int
	closed *sync.Cond
	// acting counts the claims of acts under way, by workspace.
	acting map[string]int
	// stalled counts, by workspace, the reasons to claim nothing: outcomes that the database did not take yet.
	stalled map[string]int
}

func newRoom(places int) *room {
	r := &room{places: places, freed: make(chan struct{}, 1), held: map[party]int{}, opened: map[Part]int{}, acting: map[string]int{}, stalled: map[string]int{}}
	r.closed = sync.NewCond(&r.mu)
	return r
}

func (r *room) enter(d autopost.Delivery) { r.count(d, 1) }

func (r *room) leave(d autopost.Delivery) {
	r.count(d, -1)
	r.hint()
}

func (r *room) count(d autopost.Delivery, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold(n, platformOf(d), workspaceOf(d), groupOf(d))
}

// hold expects mu to be held.
func (r *room) hold(n int, parties ...party) {
	r.taken += n
	for _, p := range parties {
		if r.held[p] += n; r.held[p] == 0 {
			delete(r.held, p)
		}
	}
}

// stall keeps anything more of a workspace from being claimed until resume: what it
// has waits for the database already.
func (r *room) stall(workspace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled[workspace]++
}

// still stalls a workspace and returns when no claim of it is under way.
func (r *room) still(workspace string) {
	r.stall(workspace)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.claimed(workspace) {
		r.closed.Wait()
	}
}

// claimed reports whether a claim of a workspace is under way. It expects mu to be held.
func (r *room) claimed(workspace string) bool {
	for part := range r.opened {
		if part.WorkspaceID == workspace {
			return true
		}
	}
	return r.acting[workspace] > 0
}

// openActs begins a claim of acts, which takes no places; closeActs ends it. False: the workspace is stalled.
func (r *room) openActs(workspace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stalled[workspace] > 0 {
		return false
	}
	r.acting[workspace]++
	return true
}

func (r *room) closeActs(workspace string) {
	r.mu.Lock()
	if r.acting[workspace]--; r.acting[workspace] == 0 {
		delete(r.acting, workspace)
	}
	r.mu.Unlock()
	r.closed.Broadcast()
}

func (r *room) resume(workspace string) {
	r.mu.Lock()
	if r.stalled[workspace]--; r.stalled[workspace] == 0 {
		delete(r.stalled, workspace)
	}
	r.mu.Unlock()
	r.hint()
}

func (r *room) hint() { signal(r.freed) }

// left is how many more a party may hold: so many that it then holds no more than
// its share of what is free. It expects mu to be held.
func (r *room) left(p party) int {
	if r.stalled[p.workspace] > 0 {
		return 0
	}
	free, share := r.places-r.taken, p.share()
	return max(0, min(free, (share*free-r.held[p]+share)/(share+1)))
}

// full names the parties that may have nothing more; all is true when that is everybody,
// until a delivery in hand has ended: what claims have taken may come back unused.
func (r *room) full() (rooms []Room, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.held {
		if r.left(p) == 0 {
			rooms = append(rooms, p.room(0))
		}
	}
	inHand := r.taken
	for _, n := range r.opened {
		inHand -= n
	}
	return rooms, inHand >= r.places
}

// open begins a claim of a part: how many deliveries it may take, and how many of each
// group. They have their places until it is closed. Nothing while a claim of the part is
// under way, nor where there is no room, nor while as many claims of the platform are under
// way as others may still begin; others says that it is they who are in the way.
func (r *room) open(part Part, most int) (limit int, rooms []Room, others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened[part] > 0 {
		return 0, nil, false
	}
	if r.claimsOn(part.Platform) >= claimsAtOnce-len(r.opened) {
		return 0, nil, true
	}
	for p := range r.held {
		if (p.workspace == part.WorkspaceID || p.workspace == "") && (p.platform == part.Platform || p.platform == "") {
			rooms = append(rooms, p.room(r.left(p)))
		}
	}
	// Of a group that holds nothing yet.
	rooms = append(rooms, Room{Room: r.left(party{workspace: part.WorkspaceID, group: "any"})})
	limit = min(most, r.left(part.platform()), r.left(part.workspace()))
	if limit > 0 {
		r.opened[part] = limit
		r.hold(limit, part.platform(), part.workspace())
	}
	return limit, rooms, len(r.opened) > 0
}

// claimsOn expects mu to be held.
func (r *room) claimsOn(platform autopost.Platform) (n int) {
	for part := range r.opened {
		if part.Platform == platform {
			n++
		}
	}
	return n
}

// close ends a claim of a part; what it took has entered.
func (r *room) close(part Part) {
	r.mu.Lock()
	r.hold(-r.opened[part], part.platform(), part.workspace())
	delete(r.opened, part)
	r.mu.Unlock()
	r.closed.Broadcast()
}

func (p Part) platform() party  { return party{platform: p.Platform} }
func (p Part) workspace() party { return party{workspace: p.WorkspaceID, platform: p.Platform} }

func (p party) room(n int) Room {
	return Room{WorkspaceID: p.workspace, Platform: p.platform, RateGroup: p.group, Room: n}
}
