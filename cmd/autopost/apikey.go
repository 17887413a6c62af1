package main

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

	"autopost/internal/admin/door"
	"autopost/internal/pg"
)

func apikeyCommand() *cobra.Command {
	return family("apikey", "Keys of the API", apikeyAddCommand(), apikeyListCommand(), apikeyShowCommand(), apikeyDisableCommand(), apikeyRotateCommand())
}

// keyMaker is what commands that make a key take. Who made it is told to the audit log; why has a default, as a fresh key explains itself.
type keyMaker struct {
	workspace, operator, reason string
	asJSON                      bool
}

func (m *keyMaker) flags(cmd *cobra.Command, reason string) {
	cmd.Flags().StringVar(&m.operator, "operator", "", "who acts, for the audit log (default the login name and host)")
	cmd.Flags().StringVar(&m.reason, "reason", reason, "why, for the audit log")
	cmd.Flags().BoolVar(&m.asJSON, "json", false, "print JSON")
}

func (m *keyMaker) act(workspace string, dryRun bool) (pg.Act, error) {
	who := m.operator
	if who == "" {
		who = operator()
	}
	if who == "" {
		return pg.Act{}, misuse{errors.New("nobody is logged in: pass --operator")}
	}
	return pg.Act{Workspace: workspace, Operator: who, Reason: m.reason, DryRun: dryRun}, nil
}

// tell prints a fresh key, this once.
func (m *keyMaker) tell(id, key, workspace string) error {
	if m.asJSON {
		return json.NewEncoder(os.Stdout).Encode(map[string]string{"id": id, "key": key})
	}
	fmt.Fprintln(os.Stdout, key)
	fmt.Fprintf(os.Stderr, "key %s of workspace %s; it is not shown again\n", id, workspace)
	return nil
}

func apikeyAddCommand() *cobra.Command {
	var m keyMaker
	var key pg.NewAPIKey
	var expires string
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Make a key for a workspace; it is printed once",
		Long: `Make a key for a workspace; it is printed once. Each role may do all that those
before it may: viewer, editor, approver, operator, owner. --scope narrows a key
further, as in --scope posts:write --scope channels:read; it is one of
` + strings.Join(door.Scopes(), ", ") + ".",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.workspace == "" || key.Name == "" {
				return misuse{fmt.Errorf("%s needs --workspace and --name", cmd.CommandPath())}
			}
			for _, scope := range key.Scopes {
				if !slices.Contains(door.Scopes(), scope) {
					return misuse{fmt.Errorf("--scope %s is unknown: use %s", scope, strings.Join(door.Scopes(), ", "))}
				}
			}
			if expires != "" {
				at, err := time.Parse(time.RFC3339, expires)
				if err != nil {
					return misuse{fmt.Errorf("--expires %s is no time with an offset: write 2026-12-01T10:00:00+03:00", expires)}
				}
				key.ExpiresAt = &at
			}
			act, err := m.act(m.workspace, false)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				secret := newKey()
				id, err := store.CreateAPIKey(ctx, act, key, secretHash(secret))
				if err != nil {
					return misuseOf(err)
				}
				return m.tell(id, secret, m.workspace)
			})
		},
	}
	cmd.Flags().StringVar(&m.workspace, "workspace", "", "workspace that the key belongs to")
	cmd.Flags().StringVar(&key.Name, "name", "", "what the key is called")
	cmd.Flags().StringVar(&key.Role, "role", "viewer", "viewer, editor, approver, operator or owner")
	cmd.Flags().StringArrayVar(&key.Scopes, "scope", nil, "narrow the key to this; may be given several times")
	cmd.Flags().StringVar(&expires, "expires", "", "when the key ends, as 2026-12-01T10:00:00+03:00 (default never)")
	m.flags(cmd, "a key was asked for")
	return cmd
}

func apikeyListCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys of a workspace, the newest first",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showKeys(cmd, workspace, "", asJSON)
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func apikeyShowCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one key, never its secret",
		Args:  oneID("a key", "autopost apikey list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showKeys(cmd, workspace, args[0], asJSON)
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// showKeys prints the keys of a workspace, or the one that is named.
func showKeys(cmd *cobra.Command, workspace, id string, asJSON bool) error {
	return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
		chosen, err := chooseWorkspace(ctx, store, workspace)
		if err != nil {
			return err
		}
		keys, err := store.ListAPIKeys(ctx, chosen, id, 10_000)
		if err != nil {
			return misuseOf(err)
		}
		if id != "" && len(keys) == 0 {
			return fmt.Errorf("workspace %s has no key %s", chosen, id)
		}
		rows := make([][]any, 0, len(keys))
		for _, k := range keys {
			replaced := ""
			if k.ReplacedBy != nil {
				replaced = *k.ReplacedBy
			}
			rows = append(rows, []any{k.KeyID, k.Name, k.Role, strings.Join(k.Scopes, " "), k.Enabled, instantText(k.ExpiresAt), instantText(k.LastUsedAt), replaced, instantText(&k.CreatedAt)})
		}
		return printTable(os.Stdout, asJSON, []string{"id", "name", "role", "scopes", "enabled", "expires_at", "last_used_at", "replaced_by", "created_at"}, rows)
	})
}

func instantText(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func apikeyDisableCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "disable ID",
		Short: "End a key for good",
		Args:  oneID("a key", "autopost apikey list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.DisableAPIKey(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				return tellKey(args[0], answer, m.act.DryRun, m.asJSON)
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func apikeyRotateCommand() *cobra.Command {
	var m keyMaker
	var overlap time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Put a fresh key in the place of another; it is printed once",
		Long: `Put a key with a fresh secret, the same name, role and scopes in the place of
another, which ends after --overlap: put the new one where the old one is used
meanwhile.`,
		Args: oneID("a key", "autopost apikey list"),
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
					return misuseOf(err)
				case !answer.Applied || dryRun:
					return tellKey(args[0], answer, dryRun, m.asJSON)
				default:
					return m.tell(answer.ID, secret, chosen)
				}
			})
		},
	}
	workspaceFlag(cmd, &m.workspace)
	cmd.Flags().DurationVar(&overlap, "overlap", time.Hour, "how long both keys work, as in 0s, 30m or 72h")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would change, and change nothing")
	m.flags(cmd, "the key is replaced")
	return cmd
}

// tellKey prints what became of a key, or would.
func tellKey(id string, a pg.KeyAnswer, dryRun, asJSON bool) error {
	if !a.Applied {
		return fmt.Errorf("nothing was changed: %s", whyNot(a.Reason, "key "+id))
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(a)
	}
	if dryRun {
		fmt.Fprintln(os.Stdout, "dry run: nothing was changed; this is what would be")
	}
	return printTable(os.Stdout, false, []string{"key", "", "enabled", "expires_at"}, [][]any{
		{a.Before.Name, "before", a.Before.Enabled, instantText(a.Before.ExpiresAt)}, {a.After.Name, "after", a.After.Enabled, instantText(a.After.ExpiresAt)},
	})
}

// misuseOf is the error of a command: misuse where it is about an argument of a function.
func misuseOf(err error) error {
	if errors.Is(err, pg.ErrArgument) {
		return misuse{err}
	}
	return err
}

// newKey is 32 random bytes, so a plain hash is enough to keep it by.
func newKey() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return "ap_" + base64.RawURLEncoding.EncodeToString(raw)
}

// secretHash is how secrets are looked up: the lower-case hexadecimal SHA-256.
func secretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
