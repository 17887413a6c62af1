package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
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
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return printForecast(raw)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// heldForOperator is printed instead of a time if only an operator action ends the wait.
const heldForOperator = "after an operator action"

func printForecast(raw json.RawMessage) error {
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
		rows = append(rows, []any{c.ChannelID, c.Platform, c.RateGroup, c.Waiting, c.Held, instantOr(c.StartsAt, heldForOperator), instantOr(c.DrainsAt, heldForOperator),
			strings.ReplaceAll(c.LimitedBy, "_", " ")})
	}
	if err := table.Print(os.Stdout, false, []string{"channel", "platform", "group", "waiting", "held", "next goes", "last goes", "slowest"}, rows); err != nil {
		return err
	}
	if f.More > 0 {
		fmt.Fprintf(os.Stdout, "%d more channels are not shown\n", f.More)
	}
	fmt.Fprintf(os.Stdout, "%d deliveries wait, %d of them for an operator action; the others are sent by: %s\n", f.Waiting, f.Held, instantOr(f.DrainsAt, "unknown"))
	return nil
}
