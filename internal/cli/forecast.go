package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func forecastCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Estimate when the queue of each channel will be empty",
		Long: `Estimate when the queue of a workspace will be empty. The forecast uses rates, quotas
and posting windows. It assumes that no new post comes and no call fails. It ignores the
duration of calls: without a rate, the queue is sent as fast as the platform answers.`,
		Example: "  autopost forecast --workspace news",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.Forecast(ctx, workspace)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(raw)
				}
				return f.printForecast(raw)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// heldForOperator is printed instead of a time if only an operator action ends the wait.
const heldForOperator = table.Word("after an operator action")

// wordOr returns a time, or the words for a wait without end.
func wordOr(at *time.Time) any {
	if at == nil {
		return heldForOperator
	}
	return *at
}

func (o output) printForecast(raw json.RawMessage) error {
	var f struct {
		Waiting, Held, More int
		DrainsAt            *time.Time `json:"drains_at"`
		Channels            []struct {
			ChannelID     string `json:"channel_id"`
			Platform      string
			RateGroup     string `json:"rate_group"`
			Waiting, Held int
			StartsAt      *time.Time `json:"starts_at"`
			DrainsAt      *time.Time `json:"drains_at"`
			LimitedBy     string     `json:"limited_by"`
		}
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return fmt.Errorf("decode the forecast: %w", err)
	}
	rows := make([][]any, 0, len(f.Channels))
	for _, c := range f.Channels {
		rows = append(rows, []any{c.ChannelID, c.Platform, c.RateGroup, c.Waiting, c.Held, wordOr(c.StartsAt), wordOr(c.DrainsAt),
			strings.ReplaceAll(c.LimitedBy, "_", " ")})
	}
	err := o.rows(nil, table.Table{
		Columns: []string{"channel", "platform", "group", "waiting", "held", "next goes", "last goes", "slowest"}, Details: []string{"platform", "group", "slowest"}, Rows: rows,
		Empty: "No delivery waits. Run autopost post to enqueue a post.",
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	if f.More > 0 {
		say("%s not shown", counted(f.More, "more channel"))
	}
	say("%s waiting, %d of them for an operator action; the others are sent by: %s", countedDeliveries(f.Waiting), f.Held, instantOr(f.DrainsAt, "unknown"))
	return nil
}
