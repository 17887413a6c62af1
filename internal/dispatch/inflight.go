package dispatch

import (
	"sync"
	"sync/atomic"

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
	// claimed holds one hint that a claim ended and its key may have more due deliveries; emptied holds one that a
	// claim ended without any.
	claimed, emptied chan struct{}
	// behind is set while claims wait for answers to starts.
	behind atomic.Bool

	mu sync.Mutex
	// claims are the running claims; claimEnded signals their ends.
	claims     map[ClaimKey]*runningClaim
	claimEnded *sync.Cond
	// blocked: in the last poll, keys waited for the claims of other keys. starved: keys without a running claim
	// waited for capacity.
	blocked, starved bool
	// changeClaims counts the running claims of post changes by workspace.
	changeClaims map[string]int
	// stalled counts, by workspace, the reasons not to claim: outcomes that the database has not accepted yet.
	stalled map[string]int
}

// runningClaim is a claim whose answer has not arrived.
type runningClaim struct {
	// reserved is the capacity for its deliveries.
	reserved int
	// again: since it began, its key may have got due deliveries that it does not see.
	again bool
}

func newInFlight(senders int) *inFlight {
	f := &inFlight{
		senders: senders, share: worker.NewFairShare(senders, ShareKey.weight), freed: make(chan struct{}, 1),
		claimed: make(chan struct{}, 1), emptied: make(chan struct{}, 1),
		claims: map[ClaimKey]*runningClaim{}, changeClaims: map[string]int{}, stalled: map[string]int{},
	}
	f.claimEnded = sync.NewCond(&f.mu)
	return f
}

func (f *inFlight) add(d autopost.Delivery) { f.share.Take(1, shareKeys(d)...) }

// remove gives no hint if only the key of d can use it and has a running claim: a poll follows that claim.
func (f *inFlight) remove(d autopost.Delivery) {
	f.share.Release(1, shareKeys(d)...)
	f.mu.Lock()
	claim := f.claims[claimKeyOf(d)]
	if claim != nil {
		claim.again = true
	}
	waits := claim != nil && !f.starved
	f.mu.Unlock()
	if !waits {
		f.hint()
	}
}

func (f *inFlight) hint() { worker.Wake(f.freed) }

// started gives a hint if a claim waits for answers to starts.
func (f *inFlight) started() {
	if f.behind.Swap(false) {
		f.hint()
	}
}

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
	for f.claimsIn(workspace) {
		f.claimEnded.Wait()
	}
}

// claimsIn expects mu to be held.
func (f *inFlight) claimsIn(workspace string) bool {
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

// full returns the keys without capacity. all means that no sender is free for a claim; a running claim may return
// what it reserved.
func (f *inFlight) full() (keys []Capacity, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocked, f.starved = false, false
	for _, key := range f.share.Keys() {
		if f.left(key) == 0 {
			keys = append(keys, key.capacity(0))
			f.starved = f.starved || f.claims[ClaimKey{key.workspace, key.platform}] == nil
		}
	}
	all = f.share.Taken() >= f.senders
	f.starved = f.starved || all
	return keys, all
}

// claiming returns what cannot be claimed before a running claim ends: the keys of the claims, and the platforms
// without a free claim.
func (f *inFlight) claiming() (keys []Capacity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	platforms := map[autopost.Platform]bool{}
	for key := range f.claims {
		keys = append(keys, key.workspace().capacity(0))
		if !platforms[key.Platform] && !f.mayClaim(key.Platform) {
			platforms[key.Platform], f.blocked = true, true
			keys = append(keys, key.platform().capacity(0))
		}
	}
	return keys
}

// woken makes a poll follow each running claim.
func (f *inFlight) woken() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, claim := range f.claims {
		claim.again = true
	}
}

// state returns whether a claim runs, and whether keys wait for the claims of other keys.
func (f *inFlight) state() (claiming, blocked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.claims) > 0, f.blocked
}

// beginClaim reserves capacity for a claim: limit deliveries, and of each group at most its entry in free. A limit
// of 0 means that no claim may begin; running then means that one is running.
func (f *inFlight) beginClaim(key ClaimKey, most int) (limit int, free []Capacity, running bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claims[key] != nil {
		return 0, nil, true
	}
	if !f.mayClaim(key.Platform) {
		f.blocked = true
		return 0, nil, false
	}
	for _, k := range f.share.Keys() {
		if (k.workspace == key.WorkspaceID || k.workspace == "") && (k.platform == key.Platform || k.platform == "") {
			free = append(free, k.capacity(f.left(k)))
		}
	}
	// Capacity for a group with nothing in flight.
	free = append(free, Capacity{Free: f.left(ShareKey{workspace: key.WorkspaceID, group: "any"})})
	limit = min(most, f.left(key.platform()), f.left(key.workspace()))
	if limit == 0 {
		f.starved, f.blocked = true, f.blocked || len(f.claims) > 0
		return 0, nil, false
	}
	f.claims[key] = &runningClaim{reserved: limit}
	f.share.Take(limit, key.platform(), key.workspace())
	return limit, free, false
}

// mayClaim reports whether a platform may begin another claim: it may use as many as are left for other platforms.
// It expects mu to be held.
func (f *inFlight) mayClaim(platform autopost.Platform) bool {
	n := 0
	for key := range f.claims {
		if key.Platform == platform {
			n++
		}
	}
	return n < maxClaims-len(f.claims)
}

// endClaim returns the reserved capacity. The n claimed deliveries were added before.
func (f *inFlight) endClaim(key ClaimKey, n int) {
	f.mu.Lock()
	claim := f.claims[key]
	f.share.Release(claim.reserved, key.platform(), key.workspace())
	delete(f.claims, key)
	f.mu.Unlock()
	f.claimEnded.Broadcast()
	if n > 0 || claim.again {
		worker.Wake(f.claimed)
	} else {
		worker.Wake(f.emptied)
	}
}
