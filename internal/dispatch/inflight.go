package dispatch

import (
	"sync"

	"autopost"
	"autopost/internal/worker"
)

// ShareKey identifies deliveries that share capacity: those of a platform, of a workspace on it, or of a rate
// group. An empty field matches any value.
type ShareKey struct {
	workspace string
	platform  autopost.Platform
	group     string
}

func claimKeyOf(d autopost.Delivery) ClaimKey { return ClaimKey{d.WorkspaceID, d.Platform} }

func (k ClaimKey) platform() ShareKey { return ShareKey{platform: k.Platform} }
func (k ClaimKey) workspace() ShareKey {
	return ShareKey{workspace: k.WorkspaceID, platform: k.Platform}
}

// shareKeys returns the keys of a delivery: its platform, its workspace there and its rate group.
func shareKeys(d autopost.Delivery) []ShareKey {
	key := claimKeyOf(d)
	return []ShareKey{key.platform(), key.workspace(), {d.WorkspaceID, d.Platform, d.RateGroup}}
}

// weight gives a group alone half of the capacity, a workspace two thirds and a platform four fifths.
func (k ShareKey) weight() int {
	switch {
	case k.group != "":
		return 1
	case k.workspace != "":
		return 2
	default:
		return 4
	}
}

func (k ShareKey) capacity(free int) Capacity {
	return Capacity{WorkspaceID: k.workspace, Platform: k.platform, RateGroup: k.group, Free: free}
}

// maxClaims bounds the concurrent claims. Each uses a connection to the database, and starts and outcomes need
// connections, too.
const maxClaims = 6

// inFlight counts the deliveries from the claim until the commit. It decides how many more a claim may take, so
// that each can start soon and no key takes all capacity.
type inFlight struct {
	senders int
	share   *worker.FairShare[ShareKey]
	// freed holds one hint that capacity is free, or that a commit opened a gate.
	freed chan struct{}

	mu sync.Mutex
	// claims are the running claims with the capacity that each has reserved; claimEnded signals their ends.
	claims     map[ClaimKey]int
	claimEnded *sync.Cond
	// changeClaims counts the running claims of post changes by workspace.
	changeClaims map[string]int
	// stalled counts, by workspace, the reasons not to claim: outcomes that the database has not accepted yet.
	stalled map[string]int
}

func newInFlight(senders int) *inFlight {
	f := &inFlight{
		senders: senders, share: worker.NewFairShare(senders, ShareKey.weight), freed: make(chan struct{}, 1),
		claims: map[ClaimKey]int{}, changeClaims: map[string]int{}, stalled: map[string]int{},
	}
	f.claimEnded = sync.NewCond(&f.mu)
	return f
}

func (f *inFlight) add(d autopost.Delivery) { f.share.Take(1, shareKeys(d)...) }

func (f *inFlight) remove(d autopost.Delivery) {
	f.share.Release(1, shareKeys(d)...)
	f.hint()
}

func (f *inFlight) hint() { worker.Wake(f.freed) }

// stall stops claims of a workspace until resume.
func (f *inFlight) stall(workspace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalled[workspace]++
}

// stallAndWait stalls a workspace and returns when it has no running claim.
func (f *inFlight) stallAndWait(workspace string) {
	f.stall(workspace)
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.claiming(workspace) {
		f.claimEnded.Wait()
	}
}

// claiming expects mu to be held.
func (f *inFlight) claiming(workspace string) bool {
	for key := range f.claims {
		if key.WorkspaceID == workspace {
			return true
		}
	}
	return f.changeClaims[workspace] > 0
}

func (f *inFlight) resume(workspace string) {
	f.mu.Lock()
	if f.stalled[workspace]--; f.stalled[workspace] == 0 {
		delete(f.stalled, workspace)
	}
	f.mu.Unlock()
	f.hint()
}

// beginChangeClaim registers a claim of post changes, which reserves no capacity. It returns false if the
// workspace is stalled.
func (f *inFlight) beginChangeClaim(workspace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stalled[workspace] > 0 {
		return false
	}
	f.changeClaims[workspace]++
	return true
}

func (f *inFlight) endChangeClaim(workspace string) {
	f.mu.Lock()
	if f.changeClaims[workspace]--; f.changeClaims[workspace] == 0 {
		delete(f.changeClaims, workspace)
	}
	f.mu.Unlock()
	f.claimEnded.Broadcast()
}

// left expects mu to be held.
func (f *inFlight) left(key ShareKey) int {
	if f.stalled[key.workspace] > 0 {
		return 0
	}
	return f.share.Left(key)
}

// full returns the keys without capacity. all means that every sender is busy; capacity that claims have
// reserved does not count, because they may return it.
func (f *inFlight) full() (keys []Capacity, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range f.share.Keys() {
		if f.left(key) == 0 {
			keys = append(keys, key.capacity(0))
		}
	}
	busy := f.share.Taken()
	for _, reserved := range f.claims {
		busy -= reserved
	}
	return keys, busy >= f.senders
}

// beginClaim reserves capacity for a claim: limit deliveries, and of each group at most its entry in free. A limit
// of 0 means that no claim may run; waits then means that it is because of the claims of other keys.
func (f *inFlight) beginClaim(key ClaimKey, most int) (limit int, free []Capacity, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claims[key] > 0 {
		return 0, nil, false
	}
	// A platform may use as many claims as are left for other platforms.
	if f.claimsOn(key.Platform) >= maxClaims-len(f.claims) {
		return 0, nil, true
	}
	for _, k := range f.share.Keys() {
		if (k.workspace == key.WorkspaceID || k.workspace == "") && (k.platform == key.Platform || k.platform == "") {
			free = append(free, k.capacity(f.left(k)))
		}
	}
	// Capacity for a group with nothing in flight.
	free = append(free, Capacity{Free: f.left(ShareKey{workspace: key.WorkspaceID, group: "any"})})
	limit = min(most, f.left(key.platform()), f.left(key.workspace()))
	if limit > 0 {
		f.claims[key] = limit
		f.share.Take(limit, key.platform(), key.workspace())
	}
	return limit, free, len(f.claims) > 0
}

// claimsOn expects mu to be held.
func (f *inFlight) claimsOn(platform autopost.Platform) (n int) {
	for key := range f.claims {
		if key.Platform == platform {
			n++
		}
	}
	return n
}

// endClaim returns the reserved capacity. The claimed deliveries were added before.
func (f *inFlight) endClaim(key ClaimKey) {
	f.mu.Lock()
	f.share.Release(f.claims[key], key.platform(), key.workspace())
	delete(f.claims, key)
	f.mu.Unlock()
	f.claimEnded.Broadcast()
}
