package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"autopost"
	"autopost/internal/pg"
)

// botRPS is how many updates a second an endpoint of a bot takes: MAX sends up to 100.
const botRPS = 100

// isBot reports whether a kind of endpoint is a platform that tells of its bots.
func isBot(kind string) bool {
	return kind == string(autopost.Telegram) || kind == string(autopost.MAX)
}

// fieldsOfBot makes an endpoint one for the updates of a bot.
func fieldsOfBot(kind, authRef string, fields map[string]any) error {
	if authRef == "" {
		return misuse{fmt.Errorf("--kind %s needs --auth-ref, the name of the bot's credential: autopost credential list shows them", kind)}
	}
	meta := map[string]any{}
	if given, ok := fields["meta"].(json.RawMessage); ok {
		if err := json.Unmarshal(given, &meta); err != nil || meta == nil {
			return misuse{errors.New("--meta holds no JSON object")}
		}
	}
	meta["auth_ref"] = authRef
	fields["kind"], fields["meta"] = "bot_webhook", meta
	if _, given := fields["ingress_rps"]; !given {
		fields["ingress_rps"] = botRPS
	}
	return nil
}

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
