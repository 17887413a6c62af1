package control

import (
	"slices"

	"autopost/internal/sim"
)

// post is a post on the page, with its thread.
type post struct {
	sim.Entry
	// Replies are all direct and indirect answers to the post, oldest first.
	Replies []*post
	Change  changed
}

// changed is the current state of a post.
type changed struct{ Gone, Changed, OnTop bool }

// changesOf returns the states of messages by platform and chat, and by message id.
func changesOf(entries []sim.Entry) map[[2]string]map[string]changed {
	all := map[[2]string]map[string]changed{}
	for _, e := range entries {
		if !e.Accepted {
			continue
		}
		mark := func(ids []string, set func(*changed)) {
			key := [2]string{e.Platform, e.Chat}
			if all[key] == nil {
				all[key] = map[string]changed{}
			}
			for _, id := range ids {
				f := all[key][id]
				set(&f)
				all[key][id] = f
			}
		}
		mark(e.Removed, func(f *changed) { f.Gone = true })
		mark(e.Edited, func(f *changed) { f.Changed = true })
		mark(e.Unpinned, func(f *changed) { f.OnTop = false })
		mark(e.Pinned, func(f *changed) { f.OnTop = true })
	}
	return all
}

// threads attaches the posts of a chat, newest first, to the first post of their thread.
func threads(newestFirst []sim.Entry, changes map[string]changed) []*post {
	first := map[string]*post{} // first posts, by each id of their threads
	var roots []*post
	for _, e := range slices.Backward(newestFirst) {
		p := &post{Entry: e}
		for _, id := range e.MessageIDs {
			f := changes[id]
			p.Change = changed{p.Change.Gone || f.Gone, p.Change.Changed || f.Changed, p.Change.OnTop || f.OnTop}
		}
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
