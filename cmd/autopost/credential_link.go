package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/adapter/twitter"
	"autopost/internal/adapter/youtube"
	"autopost/internal/pg"
)

// consentURLs are where people allow an app to act for their account, by platform.
var consentURLs = map[autopost.Platform]func(clientID, redirect, state, challenge string) string{
	autopost.X:       twitter.ConsentURL,
	autopost.YouTube: youtube.ConsentURL,
}

func credentialLinkCommand() *cobra.Command {
	var m manual
	l := linking{}
	cmd := &cobra.Command{
		Use:   "link NAME",
		Short: "Link an account of X or a channel of YouTube: its owner allows it in a browser",
		Long: `Link an account of X or a channel of YouTube. The address that is printed is opened in
the browser of the account's owner, on this machine or through a tunnel to it; what the
platform gives is sealed and put in force, and channels that wait for it go on.

The app is read from stdin or --from-file, as {"client_id": "…", "client_secret": "…"};
an account that is linked again may leave it out with --same-app. Register the callback
http://127.0.0.1:8976/callback for the app (or that of --listen).`,
		Args: oneArgument("name of a credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.known(cmd); err != nil {
				return err
			}
			return withDesk(cmd.Context(), func(ctx context.Context, d desk) error { return d.link(ctx, &m, args[0], l) })
		},
	}
	cmd.Flags().StringVar(&l.platform, "platform", "", "x or youtube (required for a new credential)")
	cmd.Flags().StringVar(&l.fromFile, "from-file", "", "file that holds the app (default stdin)")
	cmd.Flags().BoolVar(&l.sameApp, "same-app", false, "use the app by which it was linked before")
	cmd.Flags().StringVar(&l.listen, "listen", "127.0.0.1:8976", "loopback host:port of the callback")
	cmd.Flags().DurationVar(&l.timeout, "timeout", 10*time.Minute, "how long to wait for the owner")
	m.flags(cmd)
	return cmd
}

// linking is how an account is to be linked.
type linking struct {
	platform, fromFile, listen string
	sameApp                    bool
	timeout                    time.Duration
}

func (d desk) link(ctx context.Context, m *manual, authRef string, l linking) error {
	var err error
	if m.act.Workspace, err = chooseWorkspace(ctx, d.store, m.act.Workspace); err != nil {
		return err
	}
	app, platform, err := d.app(ctx, m.act.Workspace, authRef, l)
	if err != nil {
		return err
	}
	endpoints, err := tokenEndpoints(d.cfg)
	if err != nil {
		return err
	}
	consent, endpoint := consentURLs[platform], endpoints[platform]
	if consent == nil {
		return misuse{fmt.Errorf("accounts of platform %q are not linked: autopost credential set takes their secret; x and youtube are linked", platform)}
	}
	// What could not be stored must not be asked for.
	if !m.act.DryRun {
		if err := d.vault.EnsureKey(ctx); err != nil {
			return err
		}
	}
	state, verifier := rand.Text(), rand.Text()+rand.Text()
	listener, redirect, err := listenForCallback(ctx, l.listen)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(verifier))
	fmt.Fprintf(os.Stderr, "Open this address in the browser of the account's owner:\n\n%s\n\nwaiting on %s …\n",
		consent(app["client_id"], redirect, state, base64.RawURLEncoding.EncodeToString(sum[:])), redirect)
	if m.act.DryRun {
		_ = listener.Close()
		fmt.Fprintln(os.Stdout, "dry run: nobody is waited for, and nothing was changed")
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	code, err := awaitCode(wait, listener, state)
	if err != nil {
		return err
	}
	text, err := json.Marshal(app)
	if err != nil {
		return err
	}
	ask, done := context.WithTimeout(ctx, platformPatience)
	defer done()
	renewed, failure := endpoint.Exchange(ask, autopost.NewSecret(string(text)), code, verifier, redirect)
	if failure != nil {
		return fmt.Errorf("%s did not give a credential for the code: %s", platform, failure.Message)
	}
	put := pg.SecretToPut{AuthRef: authRef, Platform: string(platform), MadeBy: "link", ValidFor: renewed.ValidFor}
	return d.keep(ctx, m, put, renewed.Secret)
}

// app is the app on whose behalf the account is linked: client_id and client_secret.
func (d desk) app(ctx context.Context, workspace, authRef string, l linking) (map[string]string, autopost.Platform, error) {
	bound, err := d.store.GetCredential(ctx, workspace, authRef)
	if err != nil {
		return nil, "", err
	}
	platform := autopost.Platform(l.platform)
	if bound != nil && platform == "" {
		platform = autopost.Platform(bound.Platform)
	}
	if platform == "" {
		return nil, "", misuse{fmt.Errorf("credential %q is new: pass --platform", authRef)}
	}
	var given autopost.Secret
	if l.sameApp {
		given, err = d.vault.Open(ctx, workspace, authRef)
	} else {
		given, err = readSecret(l.fromFile)
	}
	if err != nil {
		return nil, "", err
	}
	var fields map[string]any
	if json.Unmarshal([]byte(given.Reveal()), &fields) != nil {
		return nil, "", misuse{fmt.Errorf(`the app is no JSON object: write it like {"client_id": "…", "client_secret": "…"}`)}
	}
	app := map[string]string{}
	for _, name := range []string{"client_id", "client_secret"} {
		if value, _ := fields[name].(string); value != "" {
			app[name] = value
		}
	}
	if app["client_id"] == "" || platform == autopost.YouTube && app["client_secret"] == "" {
		return nil, "", misuse{fmt.Errorf("the app lacks client_id or client_secret: copy them from the platform's developer pages")}
	}
	return app, platform, nil
}

func credentialRelinkCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "relink NAME",
		Short: "Go on with a credential that is good again: it is checked, its channels resume, what failed is put back",
		Long: `Go on with a credential that is good again, after autopost credential link or set, or
because its owner gave the rights back: the platform is asked first. Then its channels
resume in their order, and what failed because of it is put back into the queue, the
oldest 1000 at a time.`,
		Args: oneArgument("name of a credential"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.known(cmd); err != nil {
				return err
			}
			err := withDesk(cmd.Context(), func(ctx context.Context, d desk) error { return d.mustBeGood(ctx, &m.act.Workspace, args[0]) })
			if err != nil {
				return err
			}
			m.subject = "credential " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.Act) (pg.ActAnswer, error) {
				return store.RequeueAuthLost(ctx, act, args[0])
			})
		},
	}
	m.flags(cmd)
	return cmd
}

// mustBeGood asks the platform about a credential that was refused.
func (d desk) mustBeGood(ctx context.Context, workspace *string, authRef string) error {
	c, err := oneCredential(ctx, d.store, workspace, authRef)
	if err != nil {
		return err
	}
	found, err := d.check(ctx, *workspace, authRef, autopost.Platform(c.Platform), nil)
	if err != nil {
		return err
	}
	if found.failure != nil {
		return fmt.Errorf("credential %s is not good yet: %s", authRef, found.failure.Message)
	}
	return nil
}

// listenForCallback opens the callback's address, which must be on this machine.
func listenForCallback(ctx context.Context, address string) (net.Listener, string, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, "", misuse{fmt.Errorf("--listen %q is no loopback address with a port: write it like 127.0.0.1:8976", address)}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("listen for the callback: %w: choose another port by --listen, and register it for the app", err)
	}
	return listener, "http://" + listener.Addr().String() + "/callback", nil
}
