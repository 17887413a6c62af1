package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/api/rest"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func apikeyCommand() *cobra.Command {
	return parentCommand("apikey", "Manage API keys", apikeyAddCommand(), apikeyListCommand(), apikeyShowCommand(), apikeyRevokeCommand(), apikeyRotateCommand())
}

// newKeyFlags are the flags of the commands that create a key. Their reason has a default.
type newKeyFlags struct {
	workspace, operator, reason string
	asJSON                      bool
}

func (m *newKeyFlags) flags(cmd *cobra.Command, reason string) {
	operatorFlag(cmd, &m.operator)
	cmd.Flags().StringVar(&m.reason, "reason", reason, "reason for the audit log")
	jsonFlag(cmd, &m.asJSON)
}

func (m *newKeyFlags) act(workspace string, dryRun bool) (pg.OperatorAction, error) {
	operator, err := operatorOr(m.operator)
	return pg.OperatorAction{Workspace: workspace, Operator: operator, Reason: m.reason, DryRun: dryRun}, err
}

// print prints a new key. It cannot be printed again.
func (m *newKeyFlags) print(id, key, workspace string) error {
	if m.asJSON {
		return json.NewEncoder(os.Stdout).Encode(map[string]string{"id": id, "key": key}) // one line, easy to cut
	}
	fmt.Fprintln(os.Stdout, key)
	fmt.Fprintf(os.Stderr, "key %s of workspace %s; it is printed only once\n", id, workspace)
	return nil
}

func apikeyAddCommand() *cobra.Command {
	var m newKeyFlags
	var key pg.NewAPIKey
	var expires string
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Create an API key and print it once",
		Long: `Create an API key for a workspace and print it once. Each role includes the rights of
those before it: viewer, editor, approver, operator, owner. --scope restricts the key
further. The scopes are
` + wrapNames(rest.Scopes()),
		Example: `  autopost apikey add --workspace news --name cms --role editor --scope posts:write`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.workspace == "" || key.Name == "" {
				return usageError{errors.New("--workspace and --name must be set: the key belongs to one workspace")}
			}
			for _, scope := range key.Scopes {
				if !slices.Contains(rest.Scopes(), scope) {
					return usageError{fmt.Errorf("--scope must be one of %s, got %q", strings.Join(rest.Scopes(), ", "), scope)}
				}
			}
			if expires != "" {
				at, err := parseInstant("expires", expires)
				if err != nil {
					return err
				}
				key.ExpiresAt = &at
			}
			act, err := m.act(m.workspace, false)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				secret := newKey()
				made, err := pg.Decode[pg.PeopleAnswer](store.CreateAPIKey(ctx, act, key, secretHash(secret)))
				if err != nil {
					return asUsageError(err)
				}
				return m.print(made.ID, secret, m.workspace)
			})
		},
	}
	cmd.Flags().StringVar(&m.workspace, "workspace", "", "workspace id (required)")
	cmd.Flags().StringVar(&key.Name, "name", "", "name of the key (required)")
	cmd.Flags().StringVar(&key.Role, "role", "viewer", "viewer, editor, approver, operator or owner")
	cmd.Flags().StringArrayVar(&key.Scopes, "scope", nil, "scope that restricts the key; repeatable (default: all of the role)")
	cmd.Flags().StringVar(&expires, "expires", "", "`time` of the end of validity, like 2026-12-01T10:00:00+03:00 (default: never)")
	m.flags(cmd, "new key")
	return cmd
}

func apikeyListCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the API keys of a workspace, newest first",
		Example: "  autopost apikey list --workspace news",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.printKeys(cmd, "")
		},
	}
	f.add(cmd)
	return cmd
}

func apikeyShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an API key without its secret",
		Example: "  autopost apikey show 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa",
		Args:    oneID("key", "autopost apikey list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.printKeys(cmd, args[0])
		},
	}
	f.addOne(cmd)
	return cmd
}

// printKeys prints the keys of a workspace. An id selects one key.
func (f *readFlags) printKeys(cmd *cobra.Command, id string) error {
	return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
		keys, err := store.ListAPIKeys(ctx, workspace, id, listLimit)
		if err != nil {
			return err
		}
		if id != "" && len(keys) == 0 {
			return unknown("key "+id+" in workspace "+workspace, "autopost apikey list")
		}
		rows := make([][]any, 0, len(keys))
		for _, k := range keys {
			rows = append(rows, []any{k.KeyID, k.Name, k.Role, k.Enabled, k.Scopes, k.ExpiresAt, k.LastUsedAt, k.CreatedAt, k.ReplacedBy})
		}
		columns := []string{"key_id", "name", "role", "enabled", "scopes", "expires", "last_used", "created", "replaced_by"}
		switch {
		case id != "" && f.asJSON:
			return printJSON(keys[0])
		case id != "":
			return table.PrintRecord(os.Stdout, columns, rows[0], terminalWidth())
		}
		return f.rows(keys, table.Table{
			Columns: columns, Details: columns[4:], Rows: rows,
			Empty: "No API key: run autopost apikey add --workspace " + workspace + " --name NAME.",
		})
	})
}

func apikeyRevokeCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Aliases: []string{"disable"},
		Short:   "Disable an API key permanently",
		Example: `  autopost apikey revoke 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --reason "laptop lost"`,
		Args:    oneID("key", "autopost apikey list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.KeyAnswer](store.DisableAPIKey(ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				return printKeyChange(args[0], answer, m.act.DryRun, m.asJSON)
			})
		},
	}
	m.flags(cmd)
	m.requireReason(cmd)
	return cmd
}

func apikeyRotateCommand() *cobra.Command {
	var m newKeyFlags
	var overlap time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Replace an API key and print the new one once",
		Long: `Replace an API key by a new one with the same name, role and scopes, and print it once.
The old key stays valid for --overlap. Configure the new key in that time.`,
		Example: `  autopost apikey rotate 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa --overlap 72h`,
		Args:    oneID("key", "autopost apikey list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, m.workspace)
				if err != nil {
					return err
				}
				act, err := m.act(chosen, dryRun)
				if err != nil {
					return err
				}
				secret := newKey()
				answer, err := store.RotateAPIKey(ctx, act, args[0], secretHash(secret), overlap)
				switch {
				case err != nil:
					return asUsageError(err)
				case !answer.Applied || dryRun:
					return printKeyChange(args[0], answer, dryRun, m.asJSON)
				default:
					return m.print(answer.ID, secret, chosen)
				}
			})
		},
	}
	workspaceFlag(cmd, &m.workspace)
	durationFlag(cmd, &overlap, "overlap", time.Hour, "time in which both keys are valid, like 0s, 30m or 3d")
	dryRunFlag(cmd, &dryRun)
	m.flags(cmd, "key rotation")
	return cmd
}

// printKeyChange prints a changed key before and after the change.
func printKeyChange(id string, a pg.KeyAnswer, dryRun, asJSON bool) error {
	if !a.Applied {
		return fmt.Errorf("nothing was changed: %s", reasonText(a.Reason, "key "+id))
	}
	if asJSON {
		return printJSON(a)
	}
	if dryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
	}
	return printTable([]string{"key", "", "enabled", "expires"}, [][]any{
		{a.Before.Name, "before", a.Before.Enabled, a.Before.ExpiresAt}, {a.After.Name, "after", a.After.Enabled, a.After.ExpiresAt},
	})
}

// newKey returns a random key. It has 32 random bytes, so a plain hash is safe.
func newKey() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return "ap_" + base64.RawURLEncoding.EncodeToString(raw)
}

// secretHash returns the lower-case hexadecimal SHA-256 of a secret. The database stores
// only this hash.
func secretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
