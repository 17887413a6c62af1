package cli

import "github.com/spf13/cobra"

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
	return parentCommand("events", "Show the events of a workspace", list)
}
