package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func avatarCommand() *cobra.Command {
	list := reading{
		short:    "List the names of avatars",
		example:  "  autopost avatar list",
		function: "list_configuration",
		kind:     "avatar",
		columns:  []column{fieldColumn("avatar_id", "avatar_id"), fieldColumn("name", "name")},
		empty:    "no names: run autopost avatar set ID --name NAME",
	}.command(nil)
	return parentCommand("avatar", "Name the avatars of domain events", list, avatarSetCommand(), avatarRemoveCommand())
}

func avatarSetCommand() *cobra.Command {
	var m operatorFlags
	var name string
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Name an avatar",
		Long: `Name an avatar. Later events of the avatar that bring no avatarName have this name in
place of {avatar_name}.`,
		Example: `  autopost avatar set 657ab0c1 --name Nyx`,
		Args:    oneArgument("avatar id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := json.Marshal(name)
			if err != nil {
				return err
			}
			return m.putAvatar(cmd, args[0], pg.Fields{"name": text})
		},
	}
	m.flags(cmd)
	cmd.Flags().StringVar(&name, "name", "", "`text` in place of {avatar_name}")
	_ = cmd.MarkFlagRequired("name") // fails only for an unknown flag
	return cmd
}

func avatarRemoveCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove the name of an avatar",
		Example: `  autopost avatar remove 657ab0c1`,
		Args:    oneArgument("avatar id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.putAvatar(cmd, args[0], pg.Fields{"name": json.RawMessage("null")})
		},
	}
	m.flags(cmd)
	return cmd
}

// putAvatar writes the fields of an avatar.
func (m *operatorFlags) putAvatar(cmd *cobra.Command, id string, fields pg.Fields) error {
	return m.put(cmd, "avatar "+id, func(ctx context.Context, store *pg.Store) (pg.PutAnswer, error) {
		return pg.Decode[pg.PutAnswer](store.PutAvatar(ctx, m.act, id, fields))
	})
}
