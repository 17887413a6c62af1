package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/api/rest"
	"autopost/internal/config"
	"autopost/internal/password"
	"autopost/internal/pg"
	"autopost/internal/table"
	"autopost/internal/web"
)

func userCommand() *cobra.Command {
	return parentCommand("user", "Manage people who sign in to the pages", userListCommand(), userAddCommand(), userInviteCommand(), userSetCommand(),
		userEnableCommand(true), userEnableCommand(false), userSignOutCommand())
}

// userRow is a row of list_users.
type userRow struct {
	UserID            string            `json:"user_id"`
	Email             string            `json:"email"`
	Name              string            `json:"name"`
	InstallationOwner bool              `json:"installation_owner"`
	Enabled           bool              `json:"enabled"`
	HasPassword       bool              `json:"has_password"`
	Language          string            `json:"language"`
	CreatedAt         time.Time         `json:"created_at"`
	Roles             map[string]string `json:"roles"`
}

// listUsers returns the people of the installation; only one if email is not "".
func listUsers(ctx context.Context, store *pg.Store, email string) ([]userRow, error) {
	list, err := store.ListUsers(ctx, email, listLimit)
	if err != nil {
		return nil, err
	}
	rows := make([]userRow, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &rows[i]); err != nil {
			return nil, fmt.Errorf("read a person: %w", err)
		}
	}
	return rows, nil
}

// userOf returns the person with this e-mail address.
func userOf(ctx context.Context, store *pg.Store, email string) (userRow, error) {
	rows, err := listUsers(ctx, store, email)
	if err == nil && len(rows) == 0 {
		err = unknown("person "+email, "autopost user list")
	}
	if err != nil {
		return userRow{}, err
	}
	return rows[0], nil
}

func oneEmail(cmd *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(1)(cmd, args); err != nil {
		return usageError{errors.New("the command needs one e-mail address: autopost user list prints all")}
	}
	return nil
}

func userListCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use: "list", Short: "List people with their roles", Example: "  autopost user list", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				people, err := listUsers(ctx, store, "")
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(people))
				for _, p := range people {
					var roles []string
					for workspace, role := range p.Roles {
						roles = append(roles, workspace+": "+role)
					}
					slices.Sort(roles)
					rows = append(rows, []any{p.Email, p.Name, roles, p.Enabled, p.InstallationOwner, p.HasPassword, p.CreatedAt})
				}
				return o.rows(people, table.Table{
					Columns: []string{"email", "name", "roles", "enabled", "installation_owner", "password", "created"}, Rows: rows,
					Details: []string{"installation_owner", "password", "created"},
					Empty:   "No people: open the link that autopost serve prints, or run autopost user add.",
				})
			})
		},
	}
	o.add(cmd)
	return cmd
}

// userFlags are the flags of a command that changes a person.
type userFlags struct {
	operatorFlags

	name, email, role string
	owner, password   bool
}

// perform runs do with the audit flags.
func (f *userFlags) perform(cmd *cobra.Command, do func(context.Context, *pg.Store) error) error {
	if err := f.requireAudit(cmd); err != nil {
		return err
	}
	return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error { return asUsageError(do(ctx, store)) })
}

// passwordHash reads a password from standard input and hashes it.
func passwordHash(ctx context.Context) (string, error) {
	given, err := readSecret("")
	if err != nil {
		return "", err
	}
	text := given.Reveal()
	if fault := password.Fault(text); fault != "" {
		return "", usageError{fmt.Errorf("the password %s: pass another one on standard input", fault)}
	}
	return password.Hash(ctx, text)
}

// change prints the result of a change, and fails if it was refused.
func (f *userFlags) change(subject string, written pg.Written, err error) (pg.PeopleAnswer, error) {
	answer, err := pg.Decode[pg.PeopleAnswer](written, err)
	if err != nil {
		return answer, err
	}
	if !answer.Applied && answer.Reason != "unchanged" {
		return answer, fmt.Errorf("nothing was changed: %s", userRefusal(answer.Reason, subject))
	}
	if f.asJSON {
		return answer, printJSON(answer.Raw)
	}
	word := "done"
	if answer.Reason == "unchanged" {
		word = "unchanged"
	} else if f.act.DryRun {
		word = "would be changed; nothing was changed"
	}
	fmt.Fprintf(os.Stdout, "%s: %s\n", subject, word)
	return answer, nil
}

func userRefusal(reason, subject string) string {
	switch reason {
	case "email_taken":
		return "another person has this address: run autopost user list"
	case "last_installation_owner":
		return "the last owner of the installation must stay: give another person --installation-owner first"
	case "last_owner":
		return "the last owner of a workspace must stay: give another person --role owner first"
	case "already_member":
		return subject + " is a member already: run autopost user set --role"
	}
	return strings.ReplaceAll(reason, "_", " ")
}

func userAddCommand() *cobra.Command {
	var f userFlags
	cmd := &cobra.Command{
		Use:   "add EMAIL",
		Short: "Add a person with a password from standard input",
		Long: `Add a person with a role in a workspace. The password is read from standard input, so
that it is in no list of processes: append "< FILE". It must have 12 characters or more.
To let the person choose it, use autopost user invite.`,
		Example: `  autopost user add ann@example.org --name Ann --role editor --workspace news`,
		Args:    oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.perform(cmd, func(ctx context.Context, store *pg.Store) error {
				workspace, err := chooseWorkspace(ctx, store, f.act.Workspace)
				if err != nil {
					return err
				}
				hash, err := passwordHash(ctx)
				if err != nil {
					return err
				}
				fields := map[string]any{"email": args[0], "installation_owner": f.owner, "password_hash": hash}
				if f.name != "" {
					fields["name"] = f.name
				}
				written, err := store.PutUser(ctx, f.act, "", fields)
				answer, err := f.change(args[0], written, err)
				if err != nil || f.act.DryRun {
					return err
				}
				f.act.Workspace = workspace
				given, err := pg.Decode[pg.PeopleAnswer](store.PutMembership(ctx, f.act, answer.UserID, f.role))
				if err == nil && !given.Applied {
					err = fmt.Errorf("the person has no role: %s", userRefusal(given.Reason, args[0]))
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&f.name, "name", "", "name of the person (default: the address before @)")
	roleFlag(cmd, &f.role, rest.Viewer)
	cmd.Flags().BoolVar(&f.owner, "installation-owner", false, "may change settings and create workspaces")
	f.flags(cmd)
	return cmd
}

func roleFlag(cmd *cobra.Command, role *string, value string) {
	cmd.Flags().StringVar(role, "role", value, strings.Join(rest.Roles()[:4], ", ")+" or owner")
	completeFlag(cmd, "role", rest.Roles())
}

func userInviteCommand() *cobra.Command {
	var f userFlags
	cmd := &cobra.Command{
		Use:   "invite EMAIL",
		Short: "Print a link by which a person joins a workspace",
		Long: `Print a link by which a person joins a workspace and chooses a password. The link works
once, for a week. A new link for the same address replaces the old one.`,
		Example: `  autopost user invite ann@example.org --role editor --workspace news`,
		Args:    oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, store *pg.Store) error {
				cfg, err := config.Load(os.Environ())
				if err != nil {
					return err
				}
				token := web.Token()
				answer, err := pg.Decode[pg.PeopleAnswer](store.InviteUser(ctx, f.act, args[0], f.role, web.TokenHash(token)))
				if err != nil {
					return asUsageError(err)
				}
				if !answer.Applied {
					return fmt.Errorf("nothing was changed: %s", userRefusal(answer.Reason, args[0]))
				}
				link := cmp.Or(cfg.PublicURL, "http://"+cfg.Listen) + "/invite/" + token
				if f.asJSON {
					return printJSON(map[string]string{"id": answer.ID, "email": answer.Email, "link": link})
				}
				fmt.Fprintln(os.Stdout, link)
				note("send this link to %s; it works once, for a week", answer.Email)
				return nil
			})
		},
	}
	roleFlag(cmd, &f.role, rest.Viewer)
	workspaceFlag(cmd, &f.act.Workspace)
	f.auditFlags(cmd)
	return cmd
}

func userSetCommand() *cobra.Command {
	var f userFlags
	var enabled bool
	cmd := &cobra.Command{
		Use:   "set EMAIL",
		Short: "Change a person, a role or a password",
		Long: `Change a person. --role needs --workspace if there are several; --role none ends the
membership. --password reads a new password from standard input and ends all sessions of
the person.`,
		Example: `  autopost user set ann@example.org --role approver --workspace news
  autopost user set ann@example.org --password`,
		Args: oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.perform(cmd, func(ctx context.Context, store *pg.Store) error { return f.set(ctx, cmd, store, args[0], enabled) })
		},
	}
	cmd.Flags().StringVar(&f.name, "name", "", "new name")
	cmd.Flags().StringVar(&f.email, "email", "", "new e-mail address")
	roleFlag(cmd, &f.role, "")
	cmd.Flags().BoolVar(&f.owner, "installation-owner", false, "may change settings and create workspaces")
	cmd.Flags().BoolVar(&enabled, "enabled", true, "may sign in")
	cmd.Flags().BoolVar(&f.password, "password", false, "read a new password from standard input")
	f.flags(cmd)
	return cmd
}

func (f *userFlags) set(ctx context.Context, cmd *cobra.Command, store *pg.Store, email string, enabled bool) error {
	person, err := userOf(ctx, store, email)
	if err != nil {
		return err
	}
	fields := map[string]any{}
	for flag, value := range map[string]any{"name": f.name, "email": f.email, "installation-owner": f.owner, "enabled": enabled} {
		if cmd.Flags().Changed(flag) {
			fields[strings.ReplaceAll(flag, "-", "_")] = value
		}
	}
	if f.password {
		if fields["password_hash"], err = passwordHash(ctx); err != nil {
			return err
		}
	}
	if len(fields) == 0 && f.role == "" {
		return usageError{errors.New("nothing to change: pass --role, --password, --name, --email, --enabled or --installation-owner")}
	}
	if len(fields) > 0 {
		written, err := store.PutUser(ctx, f.act, person.UserID, fields)
		if _, err := f.change(email, written, err); err != nil {
			return err
		}
	}
	if f.role == "" {
		return nil
	}
	if f.act.Workspace, err = chooseWorkspace(ctx, store, f.act.Workspace); err != nil {
		return err
	}
	role := f.role
	if role == "none" {
		role = ""
	}
	written, err := store.PutMembership(ctx, f.act, person.UserID, role)
	_, err = f.change(email+" in "+f.act.Workspace, written, err)
	return err
}

// userEnableCommand returns the command enable or disable.
func userEnableCommand(enabled bool) *cobra.Command {
	var f userFlags
	verb, short, reason := "disable", "End all sessions of a person and refuse new ones", "left the company"
	if enabled {
		verb, short, reason = "enable", "Let a disabled person sign in again", "is back"
	}
	cmd := &cobra.Command{
		Use: verb + " EMAIL", Short: short, Args: oneEmail,
		Example: fmt.Sprintf("  autopost user %s ann@example.org --reason %q", verb, reason),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.perform(cmd, func(ctx context.Context, store *pg.Store) error {
				person, err := userOf(ctx, store, args[0])
				if err != nil {
					return err
				}
				written, err := store.PutUser(ctx, f.act, person.UserID, map[string]bool{"enabled": enabled})
				_, err = f.change(args[0], written, err)
				return err
			})
		},
	}
	f.changeFlags(cmd)
	return cmd
}

func userSignOutCommand() *cobra.Command {
	var f userFlags
	cmd := &cobra.Command{
		Use: "sign-out EMAIL", Short: "End all sessions of a person",
		Example: "  autopost user sign-out ann@example.org", Args: oneEmail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.perform(cmd, func(ctx context.Context, store *pg.Store) error {
				person, err := userOf(ctx, store, args[0])
				if err != nil {
					return err
				}
				written, err := store.EndSessions(ctx, f.act, person.UserID)
				_, err = f.change(args[0], written, err)
				return err
			})
		},
	}
	f.auditFlags(cmd)
	return cmd
}
