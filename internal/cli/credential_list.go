package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func credentialListCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the credentials, their state and expiry",
		Long: `List the credentials: where their secrets are stored (env, file or sealed), their state
and their expiry. State and rights are from the last autopost credential check.`,
		Example: "  autopost credential list",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				list, err := credentialRows(ctx, store, &f.workspace)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, c := range list {
					rows = append(rows, []any{c.AuthRef, c.Platform, c.Kept, c.Channels, credentialState(c), c.account(), c.mayPost(), c.expires(time.Now()), c.CheckedAt})
				}
				return f.rows(list, table.Table{
					Columns: []string{"credential", "platform", "kept", "channels", "state", "account", "may_post", "expires", "checked"},
					Details: []string{"account", "may_post", "expires", "checked"}, Rows: rows,
					Empty: "No credential: run autopost credential set NAME --platform telegram --from-file FILE.",
				})
			})
		},
	}
	f.add(cmd)
	return cmd
}

func credentialShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show the state and rights of a credential",
		Long:    "Show the state and rights of a credential. The secret is never printed.",
		Example: "  autopost credential show news-bot",
		Args:    oneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				c, err := findCredential(ctx, store, &f.workspace, args[0])
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(c.CredentialRow)
				}
				return c.print()
			})
		},
	}
	f.addOne(cmd)
	return cmd
}

// credentialRow adds the formatted columns to a credential.
type credentialRow struct{ pg.CredentialRow }

// credentialRows lists the credentials of the workspace. It sets workspace to the chosen one.
func credentialRows(ctx context.Context, store *pg.Store, workspace *string) ([]credentialRow, error) {
	var err error
	if *workspace, err = chooseWorkspace(ctx, store, *workspace); err != nil {
		return nil, err
	}
	list, err := store.ListCredentials(ctx, *workspace, listLimit)
	rows := make([]credentialRow, len(list))
	for i, c := range list {
		rows[i] = credentialRow{c}
	}
	return rows, err
}

func findCredential(ctx context.Context, store *pg.Store, workspace *string, name string) (credentialRow, error) {
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
	return fmt.Errorf("unknown credential %s in workspace %s: run autopost credential list, or autopost credential set to create it", name, workspace)
}

// credentialState describes the state of a credential.
func credentialState(c credentialRow) string {
	message := ""
	if c.Error != nil {
		message = ": " + c.Error.Message
	}
	switch {
	case c.LostAt != nil:
		return "refused since " + table.Time(*c.LostAt) + message
	case c.Failures > 0:
		return "renewal failed " + counted(c.Failures, "time") + message
	case c.Error != nil:
		return "failed" + message
	case c.CheckedAt == nil && c.RefreshedAt == nil:
		return "not checked"
	}
	return "ok"
}

func (c credentialRow) account() string { return textOr(c.Account) }

// mayPost counts the targets where the credential may post.
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

// expires formats the time until the secret expires. It is empty if the time is unknown.
func (c credentialRow) expires(now time.Time) string {
	if c.ValidUntil == nil {
		return ""
	}
	text := "in " + approximately(c.ValidUntil.Sub(now))
	if !c.ValidUntil.After(now) {
		text = approximately(now.Sub(*c.ValidUntil)) + " ago"
	}
	if c.NextRefreshAt != nil && c.LostAt == nil {
		text += ", renewed before then"
	}
	return text
}

// approximately formats a duration in its largest units.
func approximately(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.Round(time.Second).String()
}

func (c credentialRow) print() error {
	kept := c.Kept
	if c.Version > 0 {
		kept = fmt.Sprintf("%s, version %d sealed", kept, c.Version)
	}
	err := printFields([][]any{
		{"credential", c.AuthRef}, {"platform", c.Platform}, {"kept", kept}, {"channels", c.Channels}, {"state", credentialState(c)},
		{"account", c.account()}, {"expires", c.expires(time.Now())}, {"renewed", c.RefreshedAt}, {"checked", c.CheckedAt},
	})
	if err != nil || len(c.Rights) == 0 {
		return err
	}
	fmt.Fprintln(os.Stdout)
	rows := make([][]any, 0, len(c.Rights))
	for _, right := range c.Rights {
		rows = append(rows, []any{right.Target, right.Title, right.MayPost, right.Reason})
	}
	return printTable([]string{"target", "title", "may post", "why not, and what to do"}, rows)
}
