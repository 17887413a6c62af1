package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func forecastCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "When what waits will have gone, channel by channel, and what is the slowest on its way",
		Long: `Say when the queue of a workspace will have gone, given rates, quotas and posting
windows, if nothing new comes and nothing fails. How long calls take is not reckoned
with: where there is no rate, the queue goes as fast as the platform answers.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				raw, err := store.Forecast(ctx, chosen)
				if err != nil {
					return err
				}
				if asJSON {
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return tellForecast(raw)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func tellForecast(raw json.RawMessage) error {
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
		rows = append(rows, []any{c.ChannelID, c.Platform, c.RateGroup, c.Waiting, c.Held, instantOr(c.StartsAt, "not by time alone"), instantOr(c.DrainsAt, "not by time alone"),
			strings.ReplaceAll(c.LimitedBy, "_", " ")})
	}
	if err := printTable(os.Stdout, false, []string{"channel", "platform", "group", "waiting", "held", "next goes", "last goes", "slowest"}, rows); err != nil {
		return err
	}
	if f.More > 0 {
		fmt.Fprintf(os.Stdout, "and %d channels more\n", f.More)
	}
	fmt.Fprintf(os.Stdout, "%d deliveries wait, %d of them for a person; the last that goes by itself goes: %s\n", f.Waiting, f.Held, instantOr(f.DrainsAt, "none does"))
	return nil
}
