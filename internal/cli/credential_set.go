package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/credential"
	"autopost/internal/pg"
	"autopost/internal/secret"
)

func credentialSetCommand() *cobra.Command {
	var m operatorFlags
	var platform, fromFile string
	var hosts []string
	var validFor time.Duration
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Store the secret of a credential, sealed",
		Long: `Store the secret of a credential in the database, sealed with the master key. It replaces
the old secret. The secret is read from stdin or a file, never from the command line.
Channels that wait because the old secret was refused are resumed at once.

  telegram  the bot token                max      the bot token
  x         {"consumer_key", "consumer_secret", "access_token", "access_token_secret"},
            {"client_id", "client_secret", "access_token", "refresh_token"}, or a bare token
  youtube   {"client_id", "client_secret", "refresh_token"}
  webhook   whsec_ and the key in base64
  smtp      user:password of the mail server for alerts
  http      the key that a source of kind api sends, to the hosts of --host only
  postgres  the address (DSN) of a source of kind db`,
		Example: `  autopost credential set news-bot --platform telegram --from-file token.txt --reason "new bot"
  autopost credential set shop --platform http --host api.example.com --from-file key.txt --reason "offers"`,
		Args: oneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.requireAudit(cmd); err != nil {
				return err
			}
			given, err := readSecret(fromFile)
			if err != nil {
				return err
			}
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error {
				put := pg.SecretToPut{AuthRef: args[0], Platform: platform, Hosts: hosts, MadeBy: "set", ValidFor: validFor}
				return d.save(ctx, &m, put, given)
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "platform of the credential (required for a new one)")
	cmd.Flags().StringVar(&fromFile, "from-file", "", "`file` with the secret (default: stdin)")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "`host` that gets a key of platform http, like api.example.com; may be repeated")
	durationFlag(cmd, &validFor, "valid-for", 0, "validity of the secret, like 60d; an alert warns before it ends (default: unknown)")
	m.flags(cmd)
	return cmd
}

// readSecret reads a secret from a file, or from stdin without a path. It removes the line
// break at the end.
func readSecret(path string) (autopost.Secret, error) {
	text, err := readInputUpTo(cmp.Or(path, "-"), secret.MaxBytes)
	if err != nil {
		return autopost.Secret{}, err
	}
	return autopost.NewSecret(strings.TrimRight(string(text), "\r\n")), nil
}

// save seals a secret, stores it and prints the result.
func (d credentialTools) save(ctx context.Context, m *operatorFlags, put pg.SecretToPut, given autopost.Secret) error {
	var err error
	if m.act.Workspace, err = chooseWorkspace(ctx, d.store, m.act.Workspace); err != nil {
		return err
	}
	bound, err := d.store.GetCredential(ctx, m.act.Workspace, put.AuthRef)
	if err != nil {
		return err
	}
	version := 1
	if bound != nil {
		version = bound.LastVersion + 1
		if put.Platform == "" {
			put.Platform = bound.Platform
		}
	}
	if put.Platform == "" {
		return usageError{fmt.Errorf("--platform must be set for the new credential %q: write it like --platform telegram", put.AuthRef)}
	}
	if err := credential.CheckShape(autopost.Platform(put.Platform), given); err != nil {
		return usageError{fmt.Errorf("the secret of platform %s: %w", put.Platform, err)}
	}
	// A dry run seals nothing, because sealing may create the master key.
	put.Sealed = credential.SealedSecret{Version: version, KeyID: "none", WrappedKey: []byte("-"), Sealed: []byte("-")}
	if !m.act.DryRun {
		row, err := d.vault.Seal(ctx, m.act.Workspace, put.AuthRef, version, given)
		if err != nil {
			return err
		}
		put.Sealed = row
	}
	answer, err := pg.Decode[pg.SealedAnswer](d.store.PutSealedSecret(ctx, m.act, put))
	if err != nil {
		return asUsageError(err)
	}
	return m.printSaved(put.AuthRef, answer)
}

func (m *operatorFlags) printSaved(authRef string, a pg.SealedAnswer) error {
	switch a.Reason {
	case "other_platform":
		return usageError{fmt.Errorf("nothing was changed: credential %q has platform %s: use another name", authRef, a.Platform)}
	case "newer":
		return fmt.Errorf("nothing was changed: another operator has just changed %q: check it and run the command again", authRef)
	}
	if m.asJSON {
		return printJSON(map[string]any{
			"auth_ref": authRef, "dry_run": m.act.DryRun, "created": a.Created, "version": a.Version, "resumed": a.Resumed, "auth_lost": a.AuthLost,
		})
	}
	if m.act.DryRun {
		fmt.Fprintf(os.Stdout, "dry run: nothing was changed; credential %s would be sealed as version %d\n", authRef, a.Version)
		return nil
	}
	fmt.Fprintf(os.Stdout, "credential %s is sealed as version %d", authRef, a.Version)
	if a.Resumed > 0 {
		fmt.Fprintf(os.Stdout, "; resumed %s", counted(a.Resumed, "waiting channel"))
	}
	fmt.Fprintln(os.Stdout)
	if a.AuthLost > 0 {
		fmt.Fprintf(os.Stdout, "%s failed because the old secret was refused; to send them now, run\n  autopost credential requeue --workspace %s --credential %s\n",
			countedDeliveries(a.AuthLost), m.act.Workspace, authRef)
	}
	return nil
}
