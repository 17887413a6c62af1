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
	Fate    fate
}

// fate is what became of a post after it was made.
type fate struct{ Gone, Changed, OnTop bool }

// fatesOf are the fates of messages by platform and chat, and by their ids.
func fatesOf(entries []sim.Entry) map[[2]string]map[string]fate {
	all := map[[2]string]map[string]fate{}
	for _, e := range entries {
		if !e.Accepted {
			continue
		}
		set := func(ids []string, change func(*fate)) {
			key := [2]string{e.Platform, e.Chat}
			if all[key] == nil {
				all[key] = map[string]fate{}
			}
			for _, id := range ids {
				f := all[key][id]
				change(&f)
				all[key][id] = f
			}
		}
		set(e.Removed, func(f *fate) { f.Gone = true })
		set(e.Edited, func(f *fate) { f.Changed = true })
		set(e.Unpinned, func(f *fate) { f.OnTop = false })
		set(e.Pinned, func(f *fate) { f.OnTop = true })
	}
	return all
}

// threads hangs the posts of a chat, newest first, below the first one of their thread.
func threads(newestFirst []sim.Entry, fates map[string]fate) []*post {
	first := map[string]*post{} // of the thread, by each of its ids
	var roots []*post
	for _, e := range slices.Backward(newestFirst) {
		p := &post{Entry: e}
		for _, id := range e.MessageIDs {
			f := fates[id]
			p.Fate = fate{p.Fate.Gone || f.Gone, p.Fate.Changed || f.Changed, p.Fate.OnTop || f.OnTop}
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
