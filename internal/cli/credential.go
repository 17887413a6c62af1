package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func credentialCommand() *cobra.Command {
	return parentCommand("credential", "Manage credentials: set, link, check and rotate",
		credentialListCommand(), credentialShowCommand(), credentialSetCommand(), credentialBindCommand(), credentialCheckCommand(), credentialLinkCommand(),
		credentialRelinkCommand(), credentialRewrapCommand(), credentialRotateCommand(), credentialRequeueCommand())
}

func credentialRotateCommand() *cobra.Command {
	var m operatorFlags
	var channel, to, group string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Give a channel another credential",
		Long: `Give a channel another credential, and with --rate-group another rate group. If a
delivery of the channel is in flight, the command pauses the channel for two minutes and
exits 1. Run it again then.`,
		Example: `  autopost credential rotate --channel city --to news-bot-2 --reason "new bot"`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if channel == "" || to == "" {
				return usageError{errors.New("--channel and --to must be set: pass a channel id and a credential name")}
			}
			m.subject = "channel " + channel
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.RotateAuth(ctx, act, channel, to, group))
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "channel id (required)")
	cmd.Flags().StringVar(&to, "to", "", "name of the new credential (required)")
	cmd.Flags().StringVar(&group, "rate-group", "", "new rate group (default: unchanged)")
	m.flags(cmd)
	return cmd
}

func credentialRequeueCommand() *cobra.Command {
	var m operatorFlags
	var credential string
	cmd := &cobra.Command{
		Use:   "requeue",
		Short: "Resume a credential that is valid again",
		Long: `Resume a credential that was refused and is valid again. Its waiting channels are
resumed. Deliveries that failed because of it return to the queue, at most 1000 per call,
oldest first.`,
		Example: `  autopost credential requeue --credential news-bot --reason "token replaced"`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if credential == "" {
				return usageError{errors.New("--credential must be set: run autopost credential list for the names")}
			}
			m.subject = "credential " + credential
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.RequeueAuthLost(ctx, act, credential))
			})
		},
	}
	cmd.Flags().StringVar(&credential, "credential", "", "name of the credential that the channels use now (required)")
	m.flags(cmd)
	return cmd
}

func credentialBindCommand() *cobra.Command {
	p := newUpsert("credential")
	cmd := &cobra.Command{
		Use:     "bind NAME",
		Short:   "Set where the secret of a credential is stored",
		Example: `  autopost credential bind news-bot --platform telegram --secret-ref env:NEWS_BOT --reason "new bot"`,
		Args:    oneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "credential "+args[0], mayExist, func(ctx context.Context, store *pg.Store, act pg.OperatorAction, fields pg.Fields) (pg.PutAnswer, error) {
				return store.PutCredentialBinding(ctx, act, args[0], fields)
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}
