package control

import (
	"slices"

	"autopost/internal/sim"
)

// post is a post on the page, with the thread below it.
type post struct {
	sim.Entry
	// Replies are all answers to the post and to its answers, the oldest first.
	Replies []*post
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

// threads hangs the posts of a chat, newest first, below the first one of their thread.
func threads(newestFirst []sim.Entry, gone []string) []*post {
	first := map[string]*post{} // of the thread, by each of its ids
	var roots []*post
	for _, e := range slices.Backward(newestFirst) {
		p := &post{Entry: e, Gone: slices.ContainsFunc(e.MessageIDs, func(id string) bool { return slices.Contains(gone, id) })}
		root := first[e.ReplyTo]
		if root == nil {
			root = p
			roots = append(roots, p)
		} else {
			root.Replies = append(root.Replies, p)
		}
		for _, id := range e.MessageIDs {
			first[id] = root
		}
	}
	slices.Reverse(roots)
	return roots
}
