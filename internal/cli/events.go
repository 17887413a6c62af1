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
		example:  "  autopost events list --result error --channel city --since 2h",
		function: "list_events",
		filters: []filterFlag{
			{name: "result", key: "result", usage: "only this result", values: []string{"ok", "error"}},
			{name: "action", key: "action", usage: "only this action (default: of the last day)"},
			{name: "channel", key: "channel_id", usage: "only this channel (default: of the last day)"},
			{name: "delivery", key: "delivery_id", usage: "only this delivery"}, {name: "message", key: "message_id", usage: "only this message"}, sinceFlag,
		},
		columns: []column{
			timeColumn("when", "ts"), fieldColumn("action", "action"), fieldColumn("result", "result"), fieldColumn("channel", "channel_id"),
			errorColumn("why", "error"), detail(fieldColumn("delivery_id", "delivery_id")), detail(fieldColumn("attempt", "attempt")),
		},
		empty: "No event: run autopost post to enqueue the first post.",
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
			if err := m.requireAudit(cmd); err != nil {
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
	m.requireReason(cmd)
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
