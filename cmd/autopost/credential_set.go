package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	var m manual
	var platform, fromFile string
	var validFor time.Duration
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Keep the secret of a credential sealed in the database; it is read from stdin or a file",
		Long: `Keep the secret of a credential sealed in the database, and bind the credential to it,
wherever it was kept before. The secret is read from stdin or a file, never from the
command line. Channels that wait because the old secret was refused go on at once.

  telegram  the bot token                max      the bot token
  x         {"consumer_key", "consumer_secret", "access_token", "access_token_secret"},
            {"client_id", "client_secret", "access_token", "refresh_token"}, or a bare token
  youtube   {"client_id", "client_secret", "refresh_token"}
  webhook   whsec_ and the key in base64
  smtp      user:password of the mail server for alerts
  http      the key that a source of kind api sends
  postgres  the address (DSN) of a source of kind db`,
		Args: oneArgument("name of a credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.known(cmd); err != nil {
				return err
			}
			given, err := readSecret(fromFile)
			if err != nil {
				return err
			}
			return withDesk(cmd.Context(), func(ctx context.Context, d desk) error {
				put := pg.SecretToPut{AuthRef: args[0], Platform: platform, MadeBy: "set", ValidFor: validFor}
				return d.keep(ctx, &m, put, given)
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "platform of the credential (required for a new one)")
	cmd.Flags().StringVar(&fromFile, "from-file", "", "file that holds the secret (default stdin)")
	cmd.Flags().DurationVar(&validFor, "valid-for", 0, "how long it is good for, as in 1440h, to be warned in time (default nobody knows)")
	m.flags(cmd)
	return cmd
}

// readSecret reads a secret from a file, or from stdin. The line break at its end does not count.
func readSecret(path string) (autopost.Secret, error) {
	in := io.Reader(os.Stdin)
	if path != "" {
		file, err := os.Open(path)
		if err != nil {
			return autopost.Secret{}, misuse{err}
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, secret.MaxBytes+1))
	if err != nil {
		return autopost.Secret{}, fmt.Errorf("read the secret: %w", err)
	}
	if len(text) > secret.MaxBytes {
		return autopost.Secret{}, misuse{fmt.Errorf("the secret is larger than %d bytes: is it the right file?", secret.MaxBytes)}
	}
	return autopost.NewSecret(strings.TrimRight(string(text), "\r\n")), nil
}

// keep seals a secret and puts it in force, and tells what follows from it.
func (d desk) keep(ctx context.Context, m *manual, put pg.SecretToPut, given autopost.Secret) error {
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
		return misuse{fmt.Errorf("credential %q is new: pass --platform", put.AuthRef)}
	}
	if err := credential.CheckShape(autopost.Platform(put.Platform), given); err != nil {
		return misuse{fmt.Errorf("the secret of platform %s: %w", put.Platform, err)}
	}
	// A dry run seals nothing, for which it might have to make the key.
	put.Sealed = pg.SealedSecret{Version: version, KeyID: "none", WrappedKey: []byte("-"), Sealed: []byte("-")}
	if !m.act.DryRun {
		row, err := d.vault.Seal(ctx, m.act.Workspace, put.AuthRef, version, given)
		if err != nil {
			return err
		}
		put.Sealed = pg.SealedSecret(row)
	}
	answer, err := d.store.PutSealedSecret(ctx, m.act, put)
	if err != nil {
		return misuseOf(err)
	}
	return m.tellKept(put.AuthRef, answer)
}

func (m *manual) tellKept(authRef string, a pg.SealedAnswer) error {
	switch a.Reason {
	case "other_platform":
		return misuse{fmt.Errorf("nothing was changed: credential %q is for platform %s: use another name", authRef, a.Platform)}
	case "newer":
		return fmt.Errorf("nothing was changed: somebody else has just changed %q: look at it, and try again", authRef)
	}
	if m.asJSON {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"auth_ref": authRef, "dry_run": m.act.DryRun, "created": a.Created, "version": a.Version, "resumed": a.Resumed, "auth_lost": a.AuthLost,
		})
	}
	if m.act.DryRun {
		fmt.Fprintf(os.Stdout, "dry run: nothing was changed; credential %s would be sealed as version %d\n", authRef, a.Version)
		return nil
	}
	fmt.Fprintf(os.Stdout, "credential %s is sealed as version %d", authRef, a.Version)
	if a.Resumed > 0 {
		fmt.Fprintf(os.Stdout, "; %d channels that waited for it go on", a.Resumed)
	}
	fmt.Fprintln(os.Stdout)
	if a.AuthLost > 0 {
		fmt.Fprintf(os.Stdout, "%d deliveries failed because the old one was refused; to send them now:\n  autopost credential requeue --workspace %s --credential %s --reason …\n",
			a.AuthLost, m.act.Workspace, authRef)
	}
	return nil
}
