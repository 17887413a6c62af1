package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func apikeyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "apikey", Short: "Keys of the API", Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(apikeyAddCommand())
	return cmd
}

func apikeyAddCommand() *cobra.Command {
	var workspace, name, role string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Make a key for a workspace; it is printed once",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if workspace == "" || name == "" {
				return misuse{fmt.Errorf("%s needs --workspace and --name", cmd.CommandPath())}
			}
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				key := newKey()
				id, err := store.AddAPIKey(ctx, workspace, name, role, secretHash(key))
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(os.Stdout).Encode(map[string]string{"id": id, "key": key})
				}
				fmt.Fprintln(os.Stdout, key)
				fmt.Fprintf(os.Stderr, "key %s of workspace %s; it is not shown again\n", id, workspace)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace that the key belongs to")
	cmd.Flags().StringVar(&name, "name", "", "what the key is called")
	cmd.Flags().StringVar(&role, "role", "viewer", "viewer, editor, approver, operator or owner")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
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
