package cli

import "github.com/spf13/cobra"

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
	return parentCommand("events", "Show the events of a workspace", list)
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
