package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func credentialCommand() *cobra.Command {
	return family("credential", "Keep credentials sealed or say where they are, see how they are, link accounts, and go on with one that was refused",
		credentialListCommand(), credentialShowCommand(), credentialSetCommand(), credentialBindCommand(), credentialCheckCommand(), credentialLinkCommand(),
		credentialRelinkCommand(), credentialRewrapCommand(), credentialRotateCommand(), credentialRequeueCommand())
}

func credentialRotateCommand() *cobra.Command {
	var m manual
	var channel, to, group string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Give a channel another credential while nothing is being sent",
		Long: `Give a channel another credential, and with it another rate group if you name one.
While something is being sent it only pauses the channel for two minutes and exits 1:
try again when that is over.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if channel == "" || to == "" {
				return misuse{fmt.Errorf("%s needs --channel and --to", cmd.CommandPath())}
			}
			m.subject = "channel " + channel
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.RotateAuth(ctx, act, channel, to, group)
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "id of the channel (required)")
	cmd.Flags().StringVar(&to, "to", "", "auth_ref of the credential from now on (required)")
	cmd.Flags().StringVar(&group, "rate-group", "", "its rate group from now on (default as it is)")
	m.flags(cmd)
	return cmd
}

func credentialRequeueCommand() *cobra.Command {
	var m manual
	var credential string
	cmd := &cobra.Command{
		Use:   "requeue",
		Short: "Go on with a credential that was refused and is good again",
		Long: `Go on with a credential that was refused and is good again: its channels that wait
because of it are resumed, and what failed because of it is put back into the queue,
the oldest 1000 at a time.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if credential == "" {
				return misuse{fmt.Errorf("%s needs --credential", cmd.CommandPath())}
			}
			m.subject = "credential " + credential
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.RequeueAuthLost(ctx, act, credential)
			})
		},
	}
	cmd.Flags().StringVar(&credential, "credential", "", "auth_ref that the channels use now (required)")
	m.flags(cmd)
	return cmd
}

func credentialBindCommand() *cobra.Command {
	p := newPutting("credential")
	cmd := &cobra.Command{
		Use:   "bind NAME",
		Short: "Say where the secret of a credential is kept; never the secret itself",
		Args:  oneArgument("name of a credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.write(cmd, "credential "+args[0], whatever, func(ctx context.Context, store *pg.Store, act pg.Act, fields pg.Fields) (pg.PutAnswer, error) {
				return store.PutCredentialBinding(ctx, act, args[0], fields)
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	p.flags(cmd)
	return cmd
}
