package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/config"
	"autopost/internal/pg"
)

func endpointAddCommand() *cobra.Command {
	var m operatorFlags
	var n newEndpoint
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Add an endpoint and print its secret once",
		Long: `Add an endpoint. The command generates a secret and prints it once, with a curl command
to test it. --secret-file uses your own secret instead.

With --signing-ref the endpoint accepts requests that are signed by the Standard Webhooks
specification. The flag names a credential of platform webhook; its secret is "whsec_"
and base64. With --source the endpoint receives the posts of a source and has no secret.

With --kind telegram or --kind max the endpoint receives the updates of the bot of
--auth-ref. If AUTOPOST_PUBLIC_URL is set, the daemon subscribes the bot automatically.`,
		Example: `  autopost endpoint add cms --reason "new CMS"
  autopost endpoint add bot --kind telegram --auth-ref news-bot --reason "find chats"`,
		Args: oneArgument("endpoint id"),
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
					return fmt.Errorf("endpoint %s already exists: run autopost endpoint set or autopost endpoint rotate", args[0])
				}
				if n.isBot() {
					if err := requireBot(ctx, store, m.act.Workspace, n.kind, n.authRef); err != nil {
						return err
					}
				}
				change, err := pg.Decode[pg.EndpointChange](store.PutEndpoint(ctx, m.act, args[0], fields))
				if err != nil {
					return err
				}
				if err := m.printEndpointChange(change, newSecret{secret: n.secret, given: n.secretFile != "", url: n.url}); err != nil || !n.isBot() {
					return err
				}
				return adviseBot(n.kind)
			})
		},
	}
	n.flags(cmd)
	rateNames(cmd, "ingress-rps")
	m.flags(cmd)
	return cmd
}

// newEndpoint holds the flags of a new endpoint.
type newEndpoint struct {
	endpointFields

	kind, source, signingRef, authRef, secretFile, url string
	// secret is empty for signed endpoints and for those of sources.
	secret string
}

func (n *newEndpoint) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.kind, "kind", "webhook_push", "webhook_push, telegram, max or pull_source")
	cmd.Flags().StringVar(&n.authRef, "auth-ref", "", "credential name of the bot, for --kind telegram and max")
	cmd.Flags().StringVar(&n.source, "source", "", "source id, for --kind pull_source")
	cmd.Flags().StringVar(&n.signingRef, "signing-ref", "", "credential name of the signing key")
	secretFlags(cmd, &n.secretFile, &n.url)
	n.endpointFields.flags(cmd)
}

// fields returns the fields of put_endpoint. It generates or reads the secret.
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
		if err := n.setBot(fields); err != nil {
			return nil, err
		}
	case n.authRef != "":
		return nil, usageError{errors.New("--auth-ref must be used with --kind telegram or max: add --kind, or remove --auth-ref")}
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

// isBot reports whether the endpoint receives the updates of a bot.
func (n *newEndpoint) isBot() bool {
	return n.kind == string(autopost.Telegram) || n.kind == string(autopost.MAX)
}

// setBot sets the fields of an endpoint for the updates of a bot.
func (n *newEndpoint) setBot(fields map[string]any) error {
	if n.authRef == "" {
		return usageError{fmt.Errorf("--auth-ref must be set with --kind %s: run autopost credential list for the names", n.kind)}
	}
	meta := map[string]any{}
	if given, ok := fields["meta"].(json.RawMessage); ok {
		if err := json.Unmarshal(given, &meta); err != nil || meta == nil {
			return usageError{errors.New(`--meta must be a JSON object: write it like {"owner": "cms"}`)}
		}
	}
	meta["auth_ref"] = n.authRef
	fields["kind"], fields["meta"] = "bot_webhook", meta
	if _, given := fields["ingress_rps"]; !given {
		fields["ingress_rps"] = botRPS
	}
	return nil
}

// botRPS is the accepted rate of a bot endpoint in updates per second. MAX sends up to 100.
const botRPS = 100

// requireBot requires that the credential exists for the platform. The platform of the
// credential selects the format of the updates.
func requireBot(ctx context.Context, store *pg.Store, workspace, platform, authRef string) error {
	list, err := store.ListCredentials(ctx, workspace, listLimit)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.AuthRef == authRef && c.Platform == platform {
			return nil
		}
	}
	return usageError{fmt.Errorf("unknown credential %s of platform %s: run autopost credential set %s --platform %s", authRef, platform, authRef, platform)}
}

// adviseBot prints how the platform gets to know the endpoint.
func adviseBot(platform string) error {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	if cfg.PublicURL == "" {
		fmt.Fprintf(os.Stderr, "autopost: set AUTOPOST_PUBLIC_URL for the daemon to subscribe the bot automatically; or subscribe it yourself: %s must push updates to /hooks/%s with this secret\n", platform, platform)
	}
	return nil
}
