package races_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// deciding are the acts that compete for what waits for a decision. The first group is about a post, the second about an event.
var deciding = [][]string{
	{"decide_submission approve a waiting one", "decide_submission reject it", "edit_submission a waiting one", "expire_submissions"},
	{"decide_submission approve an event", "decide_submission reject an event", "put_template another text of events", "expire_submissions",
		"receive_event of a moderated type, again", "retry_submission a skipped event"},
}

// Approve, reject, edit and expire meet in all orders, two and three at once. verify finds nothing: there is one decision, and
// nothing is queued but the approved text.
func TestDecisionsMeet(t *testing.T) {
	t.Parallel()
	var groups [][]act
	for _, names := range deciding {
		var all []act
		for _, name := range names {
			at := slices.IndexFunc(acts, func(a act) bool { return strings.TrimSpace(a.String()) == name })
			require.GreaterOrEqual(t, at, 0, name)
			all = append(all, acts[at])
		}
		for i, a := range all {
			for j := i; j < len(all); j++ {
				groups = append(groups, []act{a, all[j]})
				for _, c := range all[j+1:] {
					groups = append(groups, []act{a, all[j], c})
				}
			}
		}
	}
	seed(t).Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	playAll(t, groups, pgtest.Until(5*time.Second))
}
