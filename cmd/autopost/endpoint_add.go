package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/pg"
)

func endpointAddCommand() *cobra.Command {
	var m manual
	var n newEndpoint
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Make an endpoint; its secret is printed once",
		Long: `Make an endpoint. Its secret is made, too, and printed this once with a line to try
it by; bring one of your own with --secret-file. With --signing-ref it takes
requests signed by the Standard Webhooks specification instead: the name of a
credential of platform webhook whose secret is "whsec_" and base64. With --source
it is where a feed comes in, and has no secret.

With --kind telegram or max it is where a platform tells what happens to the bot of
--auth-ref. Where AUTOPOST_PUBLIC_URL is set, the daemon subscribes the bot by itself,
with a secret of its own.`,
		Args: oneArgument("id of an endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := n.fields(cmd)
			if err != nil {
				return err
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				known, err := store.GetEndpoint(ctx, m.act.Workspace, args[0])
				if err != nil {
					return err
				}
				if known != nil {
					return fmt.Errorf("there is an endpoint %s already: use endpoint set or endpoint rotate", args[0])
				}
				if n.isBot() {
					if err := requireBot(ctx, store, m.act.Workspace, n.kind, n.authRef); err != nil {
						return err
					}
				}
				change, err := store.PutEndpoint(ctx, m.act, args[0], fields)
				if err != nil {
					return err
				}
				if err := m.tellEndpoint(change, issued{secret: n.secret, given: n.secretFile != "", url: n.url}); err != nil || !n.isBot() {
					return err
				}
				return adviseBot(n.kind)
			})
		},
	}
	n.flags(cmd)
	m.flags(cmd)
	return cmd
}

// newEndpoint is one that is being added.
type newEndpoint struct {
	endpointFields

	kind, source, signingRef, authRef, secretFile, url string
	// secret is what it gets; "" for one that is signed for, or has none.
	secret string
}

func (n *newEndpoint) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.kind, "kind", "webhook_push", "webhook_push, telegram, max or pull_source")
	cmd.Flags().StringVar(&n.authRef, "auth-ref", "", "name of the bot's credential, for --kind telegram and max")
	cmd.Flags().StringVar(&n.source, "source", "", "id of the source whose items come in here")
	cmd.Flags().StringVar(&n.signingRef, "signing-ref", "", "auth_ref of the credential by which requests are signed")
	secretFlags(cmd, &n.secretFile, &n.url)
	n.endpointFields.flags(cmd)
}

// fields are those of put_endpoint; the secret is made or read on the way.
func (n *newEndpoint) fields(cmd *cobra.Command) (map[string]any, error) {
	fields, err := n.given(cmd)
	if err != nil {
		return nil, err
	}
	if n.source != "" && !cmd.Flags().Changed("kind") {
		n.kind = "pull_source"
	}
	fields["kind"] = n.kind
	switch {
	case n.isBot():
		if err := n.nameBot(fields); err != nil {
			return nil, err
		}
	case n.authRef != "":
		return nil, misuse{errors.New("--auth-ref names a bot: use it with --kind telegram or max")}
	}
	if n.source != "" {
		fields["source_id"] = n.source
		return fields, nil
	}
	if n.signingRef != "" {
		fields["signing_ref"] = n.signingRef
		if n.secretFile == "" {
			return fields, nil
		}
	}
	if n.secret, err = newOrGiven(n.secretFile); err != nil {
		return nil, err
	}
	fields["secret_hash"] = secretHash(n.secret)
	return fields, nil
}

// isBot reports whether it is where a platform tells of its bots.
func (n *newEndpoint) isBot() bool {
	return n.kind == string(autopost.Telegram) || n.kind == string(autopost.MAX)
}

// nameBot makes the fields those of an endpoint for the updates of a bot.
func (n *newEndpoint) nameBot(fields map[string]any) error {
	if n.authRef == "" {
		return misuse{fmt.Errorf("--kind %s needs --auth-ref, the name of the bot's credential: autopost credential list shows them", n.kind)}
	}
	meta := map[string]any{}
	if given, ok := fields["meta"].(json.RawMessage); ok {
		if err := json.Unmarshal(given, &meta); err != nil || meta == nil {
			return misuse{errors.New("--meta holds no JSON object")}
		}
	}
	meta["auth_ref"] = n.authRef
	fields["kind"], fields["meta"] = "bot_webhook", meta
	if _, given := fields["ingress_rps"]; !given {
		fields["ingress_rps"] = botRPS
	}
	return nil
}

// botRPS is how many updates a second an endpoint of a bot takes: MAX sends up to 100.
const botRPS = 100

// requireBot fails unless the credential is bound for the platform: by what it is bound for the endpoint is known.
func requireBot(ctx context.Context, store *pg.Store, workspace, platform, authRef string) error {
	list, err := store.ListCredentials(ctx, workspace, mostRows)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.AuthRef == authRef && c.Platform == platform {
			return nil
		}
	}
	return misuse{fmt.Errorf("there is no credential %s of platform %s: make it by autopost credential set %s", authRef, platform, authRef)}
}

// adviseBot says what is left to do.
func adviseBot(platform string) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if cfg.PublicURL == "" {
		fmt.Fprintf(os.Stderr, "autopost: set AUTOPOST_PUBLIC_URL for the daemon, and it subscribes the bot by itself; or have %s push updates to /hooks/%s with this secret\n", platform, platform)
	}
	return nil
}
