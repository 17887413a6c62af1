package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/api"
	"autopost/internal/daemon"
	"autopost/internal/pg"
)

func eventsCommand() *cobra.Command {
	list := reading{
		short:    "List events, newest first",
		example:  "  autopost events list --result error --channel city",
		function: "list_events",
		filters: []filterFlag{
			{"result", "result", "ok or error (default: both)"}, {"action", "action", "only this action (default: of the last day)"},
			{"channel", "channel_id", "only this channel (default: of the last day)"},
			{"delivery", "delivery_id", "only this delivery"}, {"message", "message_id", "only this message"}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "ts"), fieldColumn("action", "action"), fieldColumn("result", "result"), fieldColumn("channel", "channel_id"),
			fieldColumn("attempt", "attempt"), errorColumn("why", "error"), fieldColumn("delivery_id", "delivery_id"),
		},
		lastDay: func(filter map[string]any) bool {
			return (filter["channel_id"] != nil || filter["action"] != nil) && filter["delivery_id"] == nil && filter["message_id"] == nil
		},
	}.command(nil)
	return parentCommand("events", "Show the events of a workspace", list, eventsRawCommand())
}

func eventsRawCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "raw EVENT_ID",
		Short: "Print the raw payload of an event",
		Long: `Print the whole answer of the platform to a failed call, or the body of a rejected post,
as JSON without secrets. The setting raw_retention_days must be above 0 at the time of the
event. The audit log records who read it and why.`,
		Example: `  autopost events raw 019a2b3c-4d5e-7f60-8192-a3b4c5d6e7f8 --reason "ticket 4711"`,
		Args:    oneArgument("event id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.requireAudit(); err != nil {
				return err
			}
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) (err error) {
				if m.act.Workspace, err = chooseWorkspace(ctx, d.store, m.act.Workspace); err != nil {
					return err
				}
				return asUsageError(d.printRaw(ctx, m.act, args[0]))
			})
		},
	}
	workspaceFlag(cmd, &m.act.Workspace)
	m.auditFlags(cmd)
	return cmd
}

// printRaw makes a link to a raw payload, uses it and prints the payload.
func (d credentialTools) printRaw(ctx context.Context, act pg.OperatorAction, event string) error {
	bucket, err := daemon.OpenMedia(ctx, d.cfg)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	link, err := pg.Decode[pg.RawLink](d.store.CreateRawLink(ctx, act, event, api.NewRawToken()))
	if err != nil {
		return err
	}
	if !link.Applied {
		return fmt.Errorf("workspace %s has no event %s with a raw payload: run autopost events list --json and look for payload_ref", act.Workspace, event)
	}
	ref, err := d.store.UseRawLink(ctx, act.Workspace, link.Token)
	if err != nil {
		return err
	}
	payload, err := daemon.NewRawPayloads(d.cfg, d.store, d.vault, bucket, slog.New(slog.DiscardHandler)).Read(ctx, act.Workspace, ref)
	if errors.Is(err, autopost.ErrNoOrigin) {
		return fmt.Errorf("the raw payload %s is not in the media store: its retention is over, or it could not be stored after the call", ref)
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, payload, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, out.String())
	return err
}

func auditCommand() *cobra.Command {
	list := reading{
		short:    "List operator actions, newest first",
		example:  "  autopost audit list --operator olga",
		function: "list_audit",
		filters: []filterFlag{
			{"operator", "operator", "only this operator"}, {"action", "action", "only this action, for example put_channel"},
			{"subject", "subject", "only this row, for example channel:city"}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "ts"), fieldColumn("operator", "operator"), fieldColumn("login", "login"), fieldColumn("action", "action"), fieldColumn("subject", "subject"),
			fieldColumn("reason", "reason"), fieldColumn("before", "before"), fieldColumn("after", "after"),
		},
	}.command(nil)
	return parentCommand("audit", "Show the audit log of a workspace", list)
}
