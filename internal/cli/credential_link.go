package cli

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
	"autopost/internal/credential"
	"autopost/internal/daemon"
	"autopost/internal/pg"
)

func credentialLinkCommand() *cobra.Command {
	var m operatorFlags
	l := linkFlags{}
	cmd := &cobra.Command{
		Use:   "link NAME",
		Short: "Link an X account or a YouTube channel in a browser",
		Long: `Link an X account or a YouTube channel. The command prints an address. The owner of the
account opens it in a browser, on this machine or through a tunnel to it, and allows the
app. The command seals the new secret, and the channels that wait for it are resumed.

The app is read from stdin or --from-file: {"client_id": "…", "client_secret": "…"}. With
--same-app the stored app is used. Register the callback
http://127.0.0.1:8976/callback for the app (or the address of --listen).`,
		Example: `  autopost credential link x-main --platform x --from-file app.json --reason "new account"
  autopost credential link x-main --same-app --reason "consent was withdrawn"`,
		Args: oneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.requireAudit(cmd); err != nil {
				return err
			}
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error { return d.link(ctx, &m, args[0], l) })
		},
	}
	cmd.Flags().StringVar(&l.platform, "platform", "", "x or youtube (required for a new credential)")
	cmd.Flags().StringVar(&l.fromFile, "from-file", "", "`file` with the app as JSON (default: stdin)")
	cmd.Flags().BoolVar(&l.sameApp, "same-app", false, "use the app of the stored secret")
	cmd.Flags().StringVar(&l.listen, "listen", "127.0.0.1:8976", "loopback host:port of the callback")
	durationFlag(cmd, &l.timeout, "timeout", 10*time.Minute, "largest time to wait for the owner")
	m.flags(cmd)
	return cmd
}

// exchangeTimeout limits the exchange of a code for a secret.
const exchangeTimeout = 20 * time.Second

// linkFlags are the flags of credential link.
type linkFlags struct {
	platform, fromFile, listen string
	sameApp                    bool
	timeout                    time.Duration
}

func (d credentialTools) link(ctx context.Context, m *operatorFlags, authRef string, l linkFlags) error {
	var err error
	if m.act.Workspace, err = chooseWorkspace(ctx, d.store, m.act.Workspace); err != nil {
		return err
	}
	app, platform, err := d.app(ctx, m.act.Workspace, authRef, l)
	if err != nil {
		return err
	}
	endpoints, err := daemon.TokenEndpoints(d.cfg)
	if err != nil {
		return err
	}
	endpoint, linked := endpoints[platform]
	if !linked {
		return usageError{fmt.Errorf("--platform must be x or youtube, got %q: run autopost credential set for other platforms", platform)}
	}
	// Without a master key the secret of the platform could not be stored.
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
		daemon.ConsentURL(d.cfg, platform, app["client_id"], redirect, state, base64.RawURLEncoding.EncodeToString(sum[:])), redirect)
	if m.act.DryRun {
		_ = listener.Close()
		fmt.Fprintln(os.Stdout, "dry run: nothing was changed")
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
	ask, done := context.WithTimeout(ctx, exchangeTimeout)
	defer done()
	renewed, failure := endpoint.Exchange(ask, autopost.NewSecret(string(text)), code, verifier, redirect)
	if failure != nil {
		return fmt.Errorf("%s refused the code: %s", platform, failure.Message)
	}
	put := pg.SecretToPut{AuthRef: authRef, Platform: string(platform), MadeBy: "link", ValidFor: renewed.ValidFor}
	return d.save(ctx, m, put, renewed.Secret)
}

// app returns client_id and client_secret of the app, and the platform.
func (d credentialTools) app(ctx context.Context, workspace, authRef string, l linkFlags) (map[string]string, autopost.Platform, error) {
	bound, err := d.store.GetCredential(ctx, workspace, authRef)
	if err != nil {
		return nil, "", err
	}
	platform := autopost.Platform(l.platform)
	if bound != nil && platform == "" {
		platform = autopost.Platform(bound.Platform)
	}
	if platform == "" {
		return nil, "", usageError{fmt.Errorf("--platform must be set for the new credential %q: pass x or youtube", authRef)}
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
	app, err := credential.AppOf(platform, given)
	if err != nil {
		return nil, "", usageError{err}
	}
	return app, platform, nil
}

func credentialRelinkCommand() *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:   "relink NAME",
		Short: "Check a credential and resume its channels",
		Long: `Check a credential and resume its channels, after autopost credential link or set, or
after its owner has restored the rights. If the platform accepts the credential, its
channels are resumed in their order. Deliveries that failed because of it return to the
queue, at most 1000 per call, oldest first.`,
		Example: `  autopost credential relink x-main --reason "owner allowed the app again"`,
		Args:    oneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.requireAudit(cmd); err != nil {
				return err
			}
			err := withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error {
				return d.requireAccepted(ctx, &m.act.Workspace, args[0])
			})
			if err != nil {
				return err
			}
			m.subject = "credential " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.RequeueAuthLost(ctx, act, args[0]))
			})
		},
	}
	m.flags(cmd)
	return cmd
}

// requireAccepted fails if the platform does not accept the credential.
func (d credentialTools) requireAccepted(ctx context.Context, workspace *string, authRef string) error {
	c, err := findCredential(ctx, d.store, workspace, authRef)
	if err != nil {
		return err
	}
	found, err := d.check(ctx, *workspace, authRef, autopost.Platform(c.Platform), nil)
	if err != nil {
		return err
	}
	if found.failure != nil {
		return fmt.Errorf("the platform does not accept credential %s: %s", authRef, found.failure.Message)
	}
	return nil
}

// listenForCallback listens on the callback address. It must be a loopback address.
func listenForCallback(ctx context.Context, address string) (net.Listener, string, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, "", usageError{fmt.Errorf("--listen must be a loopback address with a port, got %q: write it like 127.0.0.1:8976", address)}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("listen for the callback: %w: pass another port with --listen, and register it for the app", err)
	}
	return listener, "http://" + listener.Addr().String() + "/callback", nil
}
