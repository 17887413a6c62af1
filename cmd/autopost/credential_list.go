package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
)

// mostRows bounds what one command lists or asks about.
const mostRows = 10_000

func credentialListCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the credentials: how they are, and when they expire",
		Long: `List the credentials by name: where their secrets are kept (env, file or sealed), how
they are, and how long they are still good for. What the platform said is what it said
when it was last asked, by autopost credential check.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				list, err := credentialRows(ctx, store, &workspace)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, c := range list {
					rows = append(rows, []any{c.AuthRef, c.Platform, c.Kept, c.Channels, credentialState(c), c.account(), c.mayPost(), c.expires(time.Now()), c.checked()})
				}
				return printTable(os.Stdout, asJSON, []string{"auth_ref", "platform", "kept", "channels", "state", "account", "may_post", "expires", "checked"}, rows)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func credentialShowCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show how a credential is, and where it may post; never the secret",
		Args:  oneArgument("name of a credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				c, err := oneCredential(ctx, store, &workspace, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					encoder := json.NewEncoder(os.Stdout)
					encoder.SetIndent("", "  ")
					return encoder.Encode(c.CredentialRow)
				}
				return c.print()
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// credentialRow is a credential as commands show it.
type credentialRow struct{ pg.CredentialRow }

// credentialRows lists the credentials of the workspace, which is chosen first.
func credentialRows(ctx context.Context, store *pg.Store, workspace *string) ([]credentialRow, error) {
	var err error
	if *workspace, err = chooseWorkspace(ctx, store, *workspace); err != nil {
		return nil, err
	}
	list, err := store.ListCredentials(ctx, *workspace, mostRows)
	return convert(list, func(c pg.CredentialRow) credentialRow { return credentialRow{c} }), err
}

func oneCredential(ctx context.Context, store *pg.Store, workspace *string, name string) (credentialRow, error) {
	list, err := credentialRows(ctx, store, workspace)
	if err != nil {
		return credentialRow{}, err
	}
	for _, c := range list {
		if c.AuthRef == name {
			return c, nil
		}
	}
	return credentialRow{}, unknownCredential(*workspace, name)
}

func unknownCredential(workspace, name string) error {
	return fmt.Errorf("workspace %s has no credential %q: autopost credential list names them, autopost credential set makes one", workspace, name)
}

// credentialState says in words how a credential is.
func credentialState(c credentialRow) string {
	message := ""
	if c.Error != nil {
		message = ": " + c.Error.Message
	}
	switch {
	case c.LostAt != nil:
		return "refused since " + c.LostAt.Local().Format(time.DateTime) + message
	case c.Failures > 0:
		return fmt.Sprintf("not renewed, %d tries failed%s", c.Failures, message)
	case c.Error != nil:
		return "wrong" + message
	case c.CheckedAt == nil && c.RefreshedAt == nil:
		return "not checked"
	}
	return "ok"
}

func (c credentialRow) account() string {
	if c.Account == nil {
		return ""
	}
	return *c.Account
}

// mayPost counts the targets where the credential may post, of those asked about.
func (c credentialRow) mayPost() string {
	if c.CheckedAt == nil || len(c.Rights) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", countMayPost(c.Rights), len(c.Rights))
}

func countMayPost(rights []autopost.Right) int {
	n := 0
	for _, right := range rights {
		if right.MayPost {
			n++
		}
	}
	return n
}

// expires counts down to the end of what is in force, "" where nobody knows it.
func (c credentialRow) expires(now time.Time) string {
	if c.ValidUntil == nil {
		return ""
	}
	text := "in " + roughly(c.ValidUntil.Sub(now))
	if !c.ValidUntil.After(now) {
		text = roughly(now.Sub(*c.ValidUntil)) + " ago"
	}
	if c.NextRefreshAt != nil && c.LostAt == nil {
		text += ", renewed before"
	}
	return text
}

// roughly says a duration in its two largest units.
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.Round(time.Second).String()
}

func (c credentialRow) checked() string { return atLocal(c.CheckedAt) }

func atLocal(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Local().Format(time.DateTime)
}

func (c credentialRow) print() error {
	kept := c.Kept
	if c.Version > 0 {
		kept = fmt.Sprintf("%s, version %d sealed", kept, c.Version)
	}
	for _, line := range [][2]string{
		{"credential", c.AuthRef}, {"platform", c.Platform}, {"kept", kept}, {"channels", fmt.Sprint(c.Channels)}, {"state", credentialState(c)},
		{"account", c.account()}, {"expires", c.expires(time.Now())}, {"renewed", atLocal(c.RefreshedAt)}, {"checked", c.checked()},
	} {
		if line[1] != "" {
			fmt.Fprintf(os.Stdout, "%-11s %s\n", line[0], line[1])
		}
	}
	if len(c.Rights) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(c.Rights))
	for _, right := range c.Rights {
		rows = append(rows, []any{right.Target, right.Title, right.MayPost, right.Reason})
	}
	return printTable(os.Stdout, false, []string{"target", "title", "may post", "why not, and what to do"}, rows)
}
