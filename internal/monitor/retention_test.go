package monitor_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rounds makes a function return more as often as configured.
func (s *store) rounds(ctx context.Context, what string) (int, bool, error) {
	n, err := s.ask(ctx, what)
	s.mu.Lock()
	defer s.mu.Unlock()
	return n, s.asked[what] <= s.more[what], err
}

func (s *store) DropEventPartitions(ctx context.Context) (dropped int, more bool, inDefault int, err error) {
	dropped, more, err = s.rounds(ctx, "drop")
	return dropped, more, s.inDefault, err
}

func (s *store) PurgeReceipts(ctx context.Context, workspace string) (int, bool, error) {
	return s.rounds(ctx, "receipts "+workspace)
}

func (s *store) PurgeRuns(ctx context.Context, workspace string) (int, bool, error) {
	return s.rounds(ctx, "runs "+workspace)
}

func (s *store) PurgeSubmissions(ctx context.Context, workspace string) (int, bool, error) {
	return s.rounds(ctx, "submissions "+workspace)
}

// goingOn returns the position of a purge: each call adds a "+".
func (s *store) goingOn(ctx context.Context, what, after string) (int, string, error) {
	n, more, err := s.rounds(ctx, what+" "+after)
	if more {
		return n, after + "+", err
	}
	return n, "", err
}

func (s *store) PurgeDeliveries(ctx context.Context, workspace, after string) (int, string, error) {
	return s.goingOn(ctx, "deliveries "+workspace, after)
}

func (s *store) PurgeMessages(ctx context.Context, workspace, after string) (int, string, error) {
	return s.goingOn(ctx, "messages "+workspace, after)
}

func (s *store) PurgeSealedSecrets(ctx context.Context, workspace string) (int, bool, error) {
	return s.rounds(ctx, "sealed "+workspace)
}

func (s *store) PurgeWebhookSends(ctx context.Context, workspace string) (int, bool, error) {
	return s.rounds(ctx, "sends "+workspace)
}

func (s *store) PurgeConversations(ctx context.Context, workspace string) (int, bool, error) {
	return s.rounds(ctx, "conversations "+workspace)
}

func (s *store) PurgeAuditLog(ctx context.Context, workspace string) (int, bool, error) {
	return s.rounds(ctx, "audit "+workspace)
}

func (s *store) CheckIntegrity(ctx context.Context, workspace string) (orphans, audit []json.RawMessage, err error) {
	n, err := s.ask(ctx, "orphans "+workspace)
	if n == 0 {
		return nil, nil, err
	}
	return []json.RawMessage{json.RawMessage(`{"kind":"events.message_id","count":7}`)}, []json.RawMessage{json.RawMessage(`{"seq":3}`)}, err
}

func (s *store) AuditHead(ctx context.Context, workspace string) (int64, string, error) {
	n, err := s.ask(ctx, "head "+workspace)
	return int64(n), "abc", err
}

func TestExpiredRowsAreRemovedInTheOrderOfReferences(t *testing.T) {
	s := newStore()
	watch(t, s, 2*time.Minute+time.Second)
	var order []string
	for _, what := range s.order {
		name, workspace, _ := strings.Cut(what, " ")
		if strings.HasPrefix(workspace, "acme") || name == "drop" {
			order = append(order, name)
		}
	}
	var purges []string
	for _, name := range order {
		switch name {
		case "drop", "receipts", "runs", "submissions", "deliveries", "messages", "audit", "sealed", "sends":
			purges = append(purges, name)
		}
	}
	require.Equal(t, []string{"drop", "receipts", "runs", "submissions", "deliveries", "messages", "audit", "sealed", "sends"}, purges)
	require.Equal(t, 1, s.count("messages paused "), "a paused workspace is included")
	require.NotContains(t, s.logged(), "monitor.purged", "nothing was removed")
}

func TestRetentionRunsHourly(t *testing.T) {
	s := newStore()
	watch(t, s, 3*time.Hour-time.Second)
	require.Equal(t, 3, s.count("receipts acme"))
	require.Equal(t, 1, s.count("orphans acme"))
}

func TestAPurgeContinuesUntilNothingIsLeft(t *testing.T) {
	s := newStore()
	s.found = 5
	s.more = map[string]int{"drop": 2, "receipts acme": 3, "deliveries zeta ": 1, "deliveries zeta +": 1}
	watch(t, s, 2*time.Minute+time.Second)
	require.Equal(t, 3, s.count("drop"))
	require.Equal(t, 4, s.count("receipts acme"))
	require.Equal(t, 1, s.count("receipts zeta"))
	require.Equal(t, 1, s.count("deliveries zeta "))
	require.Equal(t, 1, s.count("deliveries zeta +"))
	require.Equal(t, 1, s.count("deliveries zeta ++"), "it continues where it stopped")
	require.Contains(t, s.logged(), `"msg":"monitor.purged","receipts":30,"runs":15,"submissions":15,"deliveries":25,"messages":15,"audit_log":15,"sealed_secrets":15`)
	require.Contains(t, s.logged(), `"msg":"monitor.partitions_dropped","partitions":15`)
}

func TestBusyPartitionsAreLeftForTheNextRun(t *testing.T) {
	s := newStore()
	s.more = map[string]int{"drop": 1000}
	s.inDefault = 3
	watch(t, s, 2*time.Minute+time.Second)
	require.Equal(t, 1, s.count("drop"))
	require.Contains(t, s.logged(), `"msg":"monitor.events_without_partition","rows":3`)
}

func TestAFailedPurgeStopsNothingElse(t *testing.T) {
	s := newStore()
	s.fails["drop"], s.fails["runs acme"], s.fails["orphans acme"] = true, true, true
	s.more = map[string]int{"runs acme": 1000}
	watch(t, s, 450*time.Second)
	require.Equal(t, 6, s.count("runs acme"), "repeated soon, and not at once")
	require.Equal(t, 6, s.count("runs zeta"))
	require.Equal(t, 6, s.count("audit acme"))
	require.Equal(t, 3, s.count("orphans zeta"))
	require.Equal(t, 3, s.count("head acme"))
}

func TestOrphansAndAuditHeadsAreLogged(t *testing.T) {
	s := newStore()
	s.found = 2
	watch(t, s, 5*time.Minute+time.Second)
	require.Contains(t, s.logged(), `"level":"ERROR","msg":"monitor.orphans","workspace_id":"acme","found":{"kind":"events.message_id","count":7}`)
	require.Contains(t, s.logged(), `"level":"ERROR","msg":"monitor.audit_chain","workspace_id":"acme","found":{"seq":3}`)
	require.Contains(t, s.logged(), `"msg":"monitor.audit_head","workspace_id":"zeta","seq":2,"hash":"abc"`)

	quiet := newStore()
	watch(t, quiet, 5*time.Minute+time.Second)
	require.NotContains(t, quiet.logged(), "audit_head", "the audit log is empty")
}
