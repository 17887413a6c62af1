package control

import (
	"slices"

	"autopost/internal/sim"
)

// post is a post on the page, with what answers it.
type post struct {
	sim.Entry
	Replies []*post // the oldest first
	// Gone says that it was taken away later.
	Gone bool
}

// removed are the ids of the messages that were taken away, by platform and chat.
func removed(entries []sim.Entry) map[[2]string][]string {
	gone := map[[2]string][]string{}
	for _, e := range entries {
		if e.Accepted && len(e.Removed) > 0 {
			key := [2]string{e.Platform, e.Chat}
			gone[key] = append(gone[key], e.Removed...)
		}
	}
	return gone
}

// threads hangs the posts of a chat, newest first, below those that they answer.
func threads(newestFirst []sim.Entry, gone []string) []*post {
	byID := map[string]*post{}
	var roots []*post
	for _, e := range slices.Backward(newestFirst) {
		p := &post{Entry: e}
		for _, id := range e.MessageIDs {
			byID[id] = p
			p.Gone = p.Gone || slices.Contains(gone, id)
		}
		if to := byID[e.ReplyTo]; e.ReplyTo != "" && to != nil && to != p {
			to.Replies = append(to.Replies, p)
			continue
		}
		roots = append(roots, p)
	}
	slices.Reverse(roots)
	return roots
}
