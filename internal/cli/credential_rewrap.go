package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"autopost/internal/credential"
	"autopost/internal/rawpayload"
	"autopost/internal/secret"
)

func credentialRewrapCommand() *cobra.Command {
	var newKey, drop, asJSON bool
	cmd := &cobra.Command{
		Use:   "rewrap",
		Short: "Move all sealed secrets to the first master key",
		Long: `Move all sealed secrets, of all workspaces, to the first key of the master key file. The
secrets themselves are not opened. Daemons keep running: they accept every key of the
file.

To change the key on one machine, use --new-key --drop-old. With several machines, add the
new key as the last line of the file on all of them, then make it the first line on all of
them, then run the command once, then remove the old lines.`,
		Example: `  autopost credential rewrap --new-key --drop-old`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error { return d.rewrap(ctx, newKey, drop, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&newKey, "new-key", false, "first add a new key as the first line, or create the file")
	cmd.Flags().BoolVar(&drop, "drop-old", false, "at the end remove the unused keys from the file")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// rewrapped is the result of a rewrap.
type rewrapped struct {
	KeyID    string `json:"key_id"`
	Rewraps  int    `json:"rewrapped"`
	Dropped  int    `json:"dropped_keys"`
	failures []error
}

func (d credentialTools) rewrap(ctx context.Context, newKey, drop, asJSON bool) error {
	ring := secret.NewKeyring(d.cfg.MasterKeyFile)
	if newKey {
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
		if err := printJSON(done); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(os.Stdout, "%s moved to master key %s; %s removed from %s\n",
			counted(done.Rewraps, "sealed secret"), done.KeyID, counted(done.Dropped, "old key"), d.cfg.MasterKeyFile)
	}
	return errors.Join(done.failures...)
}

// rewrapWorkspace moves the secrets of a workspace. It records those that cannot be opened
// and continues with the others.
func (d credentialTools) rewrapWorkspace(ctx context.Context, ring *secret.Keyring, workspace string, done *rewrapped) error {
	list, err := d.store.ListSealedSecrets(ctx, workspace, done.KeyID, listLimit)
	if err != nil {
		return err
	}
	for _, row := range list {
		at := secret.Binding{Workspace: workspace, AuthRef: row.AuthRef, Version: row.Version}
		fresh, err := ring.Rewrap(at, secret.Sealed{KeyID: row.KeyID, WrappedKey: row.WrappedKey, Text: row.Sealed})
		if err != nil {
			done.failures = append(done.failures, fmt.Errorf("workspace %s, credential %s, version %d: %w", workspace, row.AuthRef, row.Version, err))
			continue
		}
		applied, err := d.store.RewrapSecret(ctx, workspace, row.KeyID, credential.SealedSecret{
			AuthRef: row.AuthRef, Version: row.Version, KeyID: fresh.KeyID, WrappedKey: fresh.WrappedKey,
		})
		if err != nil {
			return err
		}
		if applied {
			done.Rewraps++
		}
	}
	return d.rewrapDataKeys(ctx, ring, workspace, done)
}

// rewrapDataKeys does the same for the keys that seal raw payloads.
func (d credentialTools) rewrapDataKeys(ctx context.Context, ring *secret.Keyring, workspace string, done *rewrapped) error {
	keys, err := d.store.ListDataKeys(ctx, workspace, done.KeyID)
	if err != nil {
		return err
	}
	for _, key := range keys {
		fresh, err := rawpayload.Rewrap(ring, workspace, key)
		if err != nil {
			done.failures = append(done.failures, fmt.Errorf("workspace %s, key %d of raw payloads: %w", workspace, key.Version, err))
			continue
		}
		applied, err := d.store.RewrapDataKey(ctx, workspace, key.KeyID, fresh)
		if err != nil {
			return err
		}
		if applied {
			done.Rewraps++
		}
	}
	return nil
}

// dropOld removes the old keys. It fails if an old key is in use again.
func (d credentialTools) dropOld(ctx context.Context, ring *secret.Keyring, ids []string) (int, error) {
	used, err := d.store.ListMasterKeys(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range ids[1:] {
		if used[id] > 0 {
			return 0, fmt.Errorf("%d secrets use the old key %s again, because another machine still has the old file: copy the new file to it first", used[id], id)
		}
	}
	return ring.Drop()
}

// missingKeys are those in use that the file does not waitReason.
func (d credentialTools) missingKeys(used map[string]int) ([]string, error) {
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
