package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/secret"
)

func credentialRewrapCommand() *cobra.Command {
	var fresh, drop, asJSON bool
	cmd := &cobra.Command{
		Use:   "rewrap",
		Short: "Bring all sealed secrets under the first master key of the file",
		Long: `Bring all sealed secrets, of all workspaces, under the first key of the master key file.
The secrets themselves are not opened, and daemons go on meanwhile: they open by every
key of the file.

On one machine, to change the key:     autopost credential rewrap --new-key --drop-old
On several, add the new key as the last line of the file everywhere, then make it the
first line everywhere, then rewrap once, then take the old lines away.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDesk(cmd.Context(), func(ctx context.Context, d desk) error { return d.rewrap(ctx, fresh, drop, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&fresh, "new-key", false, "first put a new key in front of the others, or make the file")
	cmd.Flags().BoolVar(&drop, "drop-old", false, "in the end take the keys out of the file under which nothing is sealed any more")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// rewrapped is what came of a rewrap.
type rewrapped struct {
	KeyID    string `json:"key_id"`
	Rewraps  int    `json:"rewrapped"`
	Dropped  int    `json:"dropped_keys"`
	failures []error
}

func (d desk) rewrap(ctx context.Context, fresh, drop, asJSON bool) error {
	ring := secret.NewKeyring(d.cfg.MasterKeyFile)
	if fresh {
		if err := ring.Renew(); err != nil {
			return err
		}
	} else if err := d.vault.EnsureKey(ctx); err != nil {
		return err
	}
	ids, err := ring.IDs()
	if err != nil {
		return err
	}
	done := rewrapped{KeyID: ids[0]}
	workspaces, err := d.store.ListAllWorkspaces(ctx)
	if err != nil {
		return err
	}
	for _, workspace := range workspaces {
		if err := d.rewrapWorkspace(ctx, ring, workspace, &done); err != nil {
			return err
		}
	}
	if drop && len(done.failures) == 0 {
		if done.Dropped, err = d.dropOld(ctx, ring, ids); err != nil {
			return err
		}
	}
	if asJSON {
		if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(os.Stdout, "%d sealed secrets were brought under master key %s; %d old keys were taken out of %s\n",
			done.Rewraps, done.KeyID, done.Dropped, d.cfg.MasterKeyFile)
	}
	return errors.Join(done.failures...)
}

// rewrapWorkspace goes on with the others where one cannot be opened.
func (d desk) rewrapWorkspace(ctx context.Context, ring *secret.Keyring, workspace string, done *rewrapped) error {
	list, err := d.store.ListSealedSecrets(ctx, workspace, done.KeyID, mostRows)
	if err != nil {
		return err
	}
	for _, row := range list {
		at := secret.Place{Workspace: workspace, AuthRef: row.AuthRef, Version: row.Version}
		fresh, err := ring.Rewrap(at, secret.Sealed{KeyID: row.KeyID, WrappedKey: row.WrappedKey, Text: row.Sealed})
		if err != nil {
			done.failures = append(done.failures, fmt.Errorf("workspace %s, credential %s, version %d: %w", workspace, row.AuthRef, row.Version, err))
			continue
		}
		applied, err := d.store.RewrapSecret(ctx, workspace, row.KeyID, pg.SealedSecret{
			AuthRef: row.AuthRef, Version: row.Version, KeyID: fresh.KeyID, WrappedKey: fresh.WrappedKey,
		})
		if err != nil {
			return err
		}
		if applied {
			done.Rewraps++
		}
	}
	return nil
}

// dropOld takes the old keys away, unless something was sealed under one meanwhile.
func (d desk) dropOld(ctx context.Context, ring *secret.Keyring, ids []string) (int, error) {
	used, err := d.store.ListMasterKeys(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range ids[1:] {
		if used[id] > 0 {
			return 0, fmt.Errorf("%d secrets are under the old key %s again: another machine still seals by it: give it the new file first", used[id], id)
		}
	}
	return ring.Drop()
}

// missingKeys are those in use that the file does not hold.
func (d desk) missingKeys(used map[string]int) ([]string, error) {
	ids, err := secret.NewKeyring(d.cfg.MasterKeyFile).IDs()
	if err != nil {
		return nil, err
	}
	var missing []string
	for id := range used {
		if !slices.Contains(ids, id) {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return missing, nil
}
