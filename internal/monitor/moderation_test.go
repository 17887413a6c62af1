package monitor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
)

func (s *store) ReadyModerationWorkspaces(ctx context.Context, _ int) ([]string, error) {
	_, err := s.ask(ctx, "moderated")
	return []string{"acme", "zeta"}, err
}

// ClaimModeration returns two calls of a workspace once.
func (s *store) ClaimModeration(ctx context.Context, workspace string, _ int) ([]autopost.ModerationCall, error) {
	what := "moderation " + workspace
	_, err := s.ask(ctx, what)
	if s.count(what) > 1 {
		return nil, err
	}
	return []autopost.ModerationCall{{ID: workspace + "-a", Kind: autopost.ModerationAsk}, {ID: workspace + "-b", Kind: autopost.ModerationAnswer}}, err
}

func (s *store) Moderate(ctx context.Context, _ string, call autopost.ModerationCall) autopost.Outcome {
	if _, err := s.ask(ctx, "moderate "+call.ID); err != nil {
		return autopost.Failed(autopost.Error{Category: autopost.Transient, Code: "unreachable", Known: true})
	}
	return autopost.Outcome{OK: true, ProviderMessageID: "1"}
}

func (s *store) FinishModeration(ctx context.Context, _ string, call autopost.ModerationCall, outcome autopost.Outcome) error {
	what := "moderated " + call.ID
	if !outcome.OK {
		what += " " + outcome.Error.Code
	}
	_, err := s.ask(ctx, what)
	return err
}

func TestASlowModeratorsChatDelaysNoOther(t *testing.T) {
	s := newStore()
	s.hangs["moderate acme-a"], s.fails["moderate zeta-a"] = true, true
	watch(t, s, 45*time.Second)
	require.Equal(t, 1, s.count("moderated acme-a unreachable"), "the failure is recorded in time")
	require.Equal(t, 1, s.count("moderated acme-b"))
	require.Equal(t, 1, s.count("moderated zeta-a unreachable"))
	require.Equal(t, 1, s.count("report moderation"), "an unreachable chat does not fail the duty")
	require.Greater(t, s.count("moderated"), 50, "more may be due while a call runs")
}

func TestModeratorsAreCalledAtOneWakeUpAfterTheLast(t *testing.T) {
	s := newStore()
	watch(t, s, 45*time.Second)
	require.Equal(t, 1, s.count("moderated zeta-b"))
	require.Equal(t, 2, s.count("moderated"), "without work the next pass waits for a wake-up")
}
