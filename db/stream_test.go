package db_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/wait"
)

// A transaction may commit long after later changes were read. Its change is shown, and others do not wait for it.
func TestAChangeThatCommitsLateIsShown(t *testing.T) {
	t.Parallel()
	base := world(t, "a")
	base.Exec(`create table public.clock (at timestamptz)`)
	base.Exec(`insert into public.clock values (now())`)
	base.Exec(`grant select on public.clock to public`)
	base.Exec(`create or replace function autopost.now_ts() returns timestamptz language plpgsql as 'begin return (select at from public.clock); end'`)
	const raise = `select autopost.raise_alert('w', 'orphans', $1, '{}', '{}')`
	slow, daemon := base.Session("slow", ""), base.Session("daemon", "engine")
	var position *string
	read := func() (subjects []string) {
		base.Exec(`update public.clock set at = at + interval '10 seconds'`)
		answer := daemon.Exec(`select autopost.stream_items('[{"workspace_id": "w"}]', $1::text::jsonb)::text`, position)[0][0].(string)
		var seen struct {
			Position json.RawMessage
			Items    []struct{ Data struct{ Subject string } }
		}
		require.NoError(t, json.Unmarshal([]byte(answer), &seen))
		text := string(seen.Position)
		position = &text
		base.Exec(`update public.clock set at = at + interval '10 seconds'`)
		for _, item := range seen.Items {
			subjects = append(subjects, item.Data.Subject)
		}
		return subjects
	}
	require.Empty(t, read())
	slow.Exec(`begin`)
	slow.Exec(raise, "slow")
	for range 3 {
		require.Empty(t, read())
	}
	base.Exec(raise, "fast")
	require.Equal(t, []string{"fast"}, read(), "others do not wait")
	// The end of a transaction of another test in the same server lets all up to then be read once more.
	require.Subset(t, []string{"fast"}, read())
	slow.Exec(`commit`)
	// The transactions of other tests in the same server delay the end, too.
	var all []string
	wait.Until(t, "the change is shown", func() bool {
		all = append(all, read()...)
		return slices.Contains(all, "slow")
	})
	wait.Until(t, "what is complete is not read again", func() bool {
		return read() == nil && pgtest.Value[bool](base, `select ($1::text::jsonb ->> 'done_at')::timestamptz > (select max(raised_at) from autopost.alerts)`, *position)
	})
	require.Empty(t, read())
}
