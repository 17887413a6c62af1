package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"autopost/internal/pg"
	"autopost/internal/sim/twitter"
)

const (
	demoXChannel = "global-x"
	demoXAccount = "4200001"
)

// decision sends a domain event that waits for a person. After the approval it arrives on X once, and a repeat is skipped.
func (d *demo) decision(ctx context.Context) (string, error) {
	if err := d.addXAccount(ctx); err != nil {
		return "", err
	}
	defer func() {
		// The next run in a kept data directory begins without this channel.
		_ = d.rows(context.WithoutCancel(ctx), `update autopost.channels set enabled = false where channel_id = `+sqlText(demoXChannel))
	}()
	act := pg.OperatorAction{Workspace: workspaceID, Operator: "user:demo", Reason: "the demo"}
	config := map[string]any{"channel_id": demoXChannel, "moderation": map[string]any{"enabled": true}}
	if _, err := d.store.PutXPostConfig(ctx, act, config); err != nil {
		return "", err
	}
	began := time.Now()
	first, err := d.event(ctx)
	if err != nil {
		return "", err
	}
	d.report.clock(began, "domain event: %d %s, submission %s", first.code, first.Status, first.SubmissionID)
	if arrived := d.sims.X.Posts(demoXAccount); first.Status != "pending" || len(arrived) != 0 {
		return "", fmt.Errorf("the event is %s with %d posts, not pending without a post", first.Status, len(arrived))
	}
	if _, err := d.store.DecideSubmission(ctx, act, first.SubmissionID, "approve", map[string]any{"source": "command"}); err != nil {
		return "", err
	}
	approved := time.Now()
	d.report.clock(approved, "approved by user:demo")
	if err := await(ctx, "the approved event is on X", func(context.Context) (bool, error) { return len(d.sims.X.Posts(demoXAccount)) > 0, nil }); err != nil {
		return "", err
	}
	arrivedAt := time.Now()
	repeat, err := d.event(ctx)
	if err != nil {
		return "", err
	}
	d.report.clock(time.Now(), "the same event again: %d %s", repeat.code, repeat.Status)
	arrived := d.sims.X.Posts(demoXAccount)
	if len(arrived) != 1 || repeat.Status != "skipped" || repeat.SubmissionID != first.SubmissionID {
		return "", fmt.Errorf("the simulated X has %d posts, and the repeat is %s", len(arrived), repeat.Status)
	}
	return fmt.Sprintf("no call before the approval; %q is on X %d ms after it, once", arrived[0].Text, arrivedAt.Sub(approved).Milliseconds()), nil
}

// eventAnswer is the answer to a domain event.
type eventAnswer struct {
	Status       string
	SubmissionID string `json:"submission_id"`

	code int
}

// event sends the domain event of this run.
func (d *demo) event(ctx context.Context) (a eventAnswer, err error) {
	body := fmt.Sprintf(`{"event": "COMBAT.SUMMARY.GENERATED", "payload": {"type": "combat", "encounterId": "e-%s", "winner": {"id": "a1", "name": "Nyx"},
		"loser": {"id": "b2", "name": "Helion %s"}, "summaryText": "Nyx won", "rounds": 7, "createdAt": "2026-06-01T14:00:00Z"}}`, d.run, d.run)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.daemon.Addr()+"/hooks/events", strings.NewReader(body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Authorization", "Bearer "+endpointSecret)
	request.Header.Set("Content-Type", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return a, fmt.Errorf("send a domain event: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	a.code = response.StatusCode
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return a, fmt.Errorf("read the answer to a domain event: %w", err)
	}
	if a.code/100 != 2 {
		return a, errors.New("the domain event was refused: " + http.StatusText(a.code))
	}
	return a, nil
}

// addXAccount adds an account to the simulated X, and its channel.
func (d *demo) addXAccount(ctx context.Context) error {
	secrets := map[string]string{"consumer_key": "demo-key", "consumer_secret": rand.Text(), "access_token": "demo-token", "access_token_secret": rand.Text()}
	err := errors.Join(
		d.sims.X.AddApp(twitter.App{Name: "demo", ConsumerKey: secrets["consumer_key"], ConsumerSecret: secrets["consumer_secret"], OwnerID: demoXAccount}),
		d.sims.X.AddUser(twitter.User{ID: demoXAccount, Username: "demo"}),
		d.sims.X.GrantOAuth1("demo", demoXAccount, secrets["access_token"], secrets["access_token_secret"]))
	if err != nil {
		return fmt.Errorf("add an account to X: %w", err)
	}
	raw, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	path := filepath.Join(d.dir, "demo-credential-x")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return err
	}
	return d.rows(ctx, fmt.Sprintf(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values (%[1]s, 'x-demo', 'x', %[3]s)
			on conflict (workspace_id, auth_ref) do update set secret_ref = excluded.secret_ref;
		insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, title) values (%[1]s, %[2]s, 'x', %[4]s, 'x-demo', 'x-demo', 'Global X')
			on conflict (workspace_id, channel_id) do update set enabled = true;`,
		sqlText(workspaceID), sqlText(demoXChannel), sqlText("file:"+path), sqlText(demoXAccount)))
}
