package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/twitter"
	"autopost/internal/adapter/youtube"
	"autopost/internal/api"
	"autopost/internal/api/rest"
	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/monitor"
	"autopost/internal/pg"
	"autopost/internal/web"
)

const (
	// exchangeTimeout limits the exchange of a code for a secret.
	exchangeTimeout = 20 * time.Second
	// mostPages limits the pages of waiting updates in one discovery.
	mostPages = 10
	// mostAsked limits the chats whose rights a discovery asks for.
	mostAsked = 20
	// linkName names the sealed app of a link, apart from all credentials.
	linkName = "(link)"
)

// ConsentURL returns the page on which the owner of an account allows an app. It is empty for a platform without linked
// accounts.
func ConsentURL(cfg config.Config, platform autopost.Platform, clientID, redirect, state, challenge string) string {
	switch platform {
	case autopost.X:
		return twitter.ConsentURL(cfg.XAPIURL, clientID, redirect, state, challenge)
	case autopost.YouTube:
		return youtube.ConsentURL(cfg.GoogleTokenURL, clientID, redirect, state, challenge)
	}
	return ""
}

// credentials checks, stores and connects credentials for the API and the pages.
type credentials struct {
	cfg       config.Config
	store     *pg.Store
	vault     *credential.Vault
	adapters  map[autopost.Platform]autopost.Adapter
	endpoints map[autopost.Platform]adapter.TokenEndpoint
	// home is the address of this daemon without a public one.
	home string
}

func (d *Daemon) credentials() credentials {
	return credentials{d.cfg, d.store, d.vault, d.adapters, d.tokens, "http://" + d.Addr()}
}

// Try implements api.Credentials.
func (c credentials) Try(ctx context.Context, platform autopost.Platform, secret autopost.Secret, targets []string) (info autopost.CredentialInfo, failure *autopost.Error, fault error) {
	if err := credential.CheckShape(platform, secret); err != nil {
		return info, nil, err
	}
	checker, ok := c.adapters[platform].(autopost.Checker)
	if !ok {
		return info, nil, nil
	}
	if endpoint, linked := c.endpoints[platform]; linked && endpoint.Renewal(secret) != autopost.RenewNever {
		return info, nil, nil // a refresh token is used once: the vault renews it, and keeps the result
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	info, failure = checker.Check(ctx, secret, targets)
	return info, failure, nil
}

// Put implements api.Credentials.
func (c credentials) Put(ctx context.Context, a rest.OperatorAction, put api.NewSecret) (rest.Written, error) {
	bound, err := c.store.GetCredential(ctx, a.Workspace, put.AuthRef)
	if err != nil {
		return rest.Written{}, err
	}
	version := 1
	if bound != nil {
		version = bound.LastVersion + 1
	}
	// A dry run seals nothing, because sealing may create the master key.
	sealed := credential.SealedSecret{Version: version, KeyID: "none", WrappedKey: []byte("-"), Sealed: []byte("-")}
	if !a.DryRun {
		if sealed, err = c.vault.Seal(ctx, a.Workspace, put.AuthRef, version, put.Secret); err != nil {
			return rest.Written{}, err
		}
	}
	return c.store.PutSealedSecret(ctx, a, pg.SecretToPut{AuthRef: put.AuthRef, Platform: string(put.Platform), Hosts: put.Hosts, Sealed: sealed, MadeBy: cmp.Or(put.MadeBy, "set"), ValidFor: put.ValidFor})
}

// PlatformOf implements api.Credentials.
func (c credentials) PlatformOf(ctx context.Context, workspace, authRef string) (autopost.Platform, error) {
	bound, err := c.store.GetCredential(ctx, workspace, authRef)
	if err != nil || bound == nil {
		return "", err
	}
	return autopost.Platform(bound.Platform), nil
}

// Check implements api.Credentials.
func (c credentials) Check(ctx context.Context, workspace, authRef string, platform autopost.Platform) (info autopost.CredentialInfo, failure *autopost.Error, err error) {
	channels, err := c.store.ListChannels(ctx, workspace, 10_000)
	if err != nil {
		return info, nil, err
	}
	targets := []string{}
	for _, channel := range channels {
		if channel.AuthRef == authRef && channel.Platform == string(platform) && len(targets) < api.MostTargets {
			targets = append(targets, channel.TargetID)
		}
	}
	checker, _ := c.adapters[platform].(autopost.Checker)
	info, failure, _ = c.vault.Check(ctx, checker, autopost.Delivery{WorkspaceID: workspace, AuthRef: authRef, Platform: platform}, targets)
	if checker == nil && failure == nil {
		return info, nil, nil
	}
	return info, failure, c.store.RecordCredentialCheck(ctx, workspace, authRef, info, failure)
}

// sealedLink is the sealed part of a link.
type sealedLink struct {
	App      map[string]string `json:"app"`
	Verifier string            `json:"verifier"`
}

// Link implements api.Credentials.
func (c credentials) Link(ctx context.Context, a rest.OperatorAction, link api.NewLink) (address string, written rest.Written, err error) {
	given := link.App
	if given.IsZero() {
		if given, err = c.vault.Open(ctx, a.Workspace, link.AuthRef); err != nil {
			return "", written, api.WrongApp("client_id must be set: the app of the stored secret cannot be read")
		}
	}
	app, err := credential.AppOf(link.Platform, given)
	if err != nil {
		return "", written, api.WrongApp(err.Error())
	}
	state, verifier := rand.Text()+rand.Text(), rand.Text()+rand.Text()
	text, err := json.Marshal(sealedLink{app, verifier})
	if err != nil {
		return "", written, err
	}
	sealed, err := c.vault.Seal(ctx, a.Workspace, linkName, 1, autopost.NewSecret(string(text)))
	if err != nil {
		return "", written, err
	}
	redirect := cmp.Or(link.Redirect, cmp.Or(c.cfg.PublicURL, c.home)+api.CallbackPath)
	written, err = c.store.BeginCredentialLink(ctx, a, link.AuthRef, pg.LinkToBegin{
		Platform: string(link.Platform), StateHash: web.TokenHash(state), Redirect: redirect, Sealed: sealed, Requeue: link.Requeue,
	})
	sum := sha256.Sum256([]byte(verifier))
	return ConsentURL(c.cfg, link.Platform, app["client_id"], redirect, state, base64.RawURLEncoding.EncodeToString(sum[:])), written, err
}

// FinishLink implements web.Accounts.
func (c credentials) FinishLink(ctx context.Context, state, code, operator string) (done web.Linked, err error) {
	link, err := c.store.TakeCredentialLink(ctx, web.TokenHash(state), operator)
	if err != nil || link == nil {
		return done, err
	}
	done = web.Linked{Workspace: link.Workspace, AuthRef: link.AuthRef, Platform: link.Platform}
	if code == "" {
		return done, nil
	}
	bound, err := json.Marshal(credential.Bound{Platform: link.Platform, SecretRef: "sealed:" + linkName, Sealed: &link.Sealed})
	if err != nil {
		return done, err
	}
	text, err := c.vault.OpenBound(link.Workspace, linkName, bound)
	if err != nil {
		return done, err
	}
	var kept sealedLink
	if err := json.Unmarshal([]byte(text.Reveal()), &kept); err != nil {
		return done, fmt.Errorf("read the app of a link: %w", err)
	}
	app, err := json.Marshal(kept.App)
	if err != nil {
		return done, err
	}
	platform := autopost.Platform(link.Platform)
	// The code is used up by now, so that the end of the request must not stop this.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
	defer cancel()
	renewed, failure := c.endpoints[platform].Exchange(ctx, autopost.NewSecret(string(app)), code, kept.Verifier, link.Redirect)
	if failure != nil {
		done.Refused = failure.Message
		return done, nil
	}
	a := rest.OperatorAction{Workspace: link.Workspace, Operator: link.Operator, Reason: link.Reason}
	written, err := c.Put(ctx, a, api.NewSecret{AuthRef: link.AuthRef, Platform: platform, Secret: renewed.Secret, ValidFor: renewed.ValidFor, MadeBy: "link"})
	answer, err := pg.Decode[pg.SealedAnswer](written, err)
	if err != nil || !answer.Applied {
		done.Refused = answer.Reason
		return done, err
	}
	if link.Requeue && answer.AuthLost > 0 {
		if _, err := c.store.RequeueAuthLost(ctx, a, link.AuthRef); err != nil {
			return done, err
		}
	}
	_, _, err = c.Check(ctx, link.Workspace, link.AuthRef, platform) // the answer is on the page
	done.OK = err == nil
	return done, err
}

// Discover implements api.Credentials.
func (c credentials) Discover(ctx context.Context, workspace, authRef string, platform autopost.Platform) (polled bool, failure *autopost.Error, err error) {
	secret, err := c.vault.Credential(ctx, workspace, authRef, platform)
	if err != nil {
		return false, credential.FailureOf(err), nil
	}
	if poller, can := c.adapters[platform].(autopost.Poller); can && c.cfg.PublicURL == "" {
		for page, after := 0, ""; page == 0 || after != "" && page < mostPages; page++ {
			var updates []json.RawMessage
			if updates, after, failure = poller.Poll(ctx, secret, after); failure != nil {
				return false, failure, nil
			}
			if err := c.store.DiscoverChats(ctx, workspace, authRef, updates); err != nil {
				return false, nil, err
			}
		}
		polled = true
	}
	return polled, nil, c.askRights(ctx, workspace)
}

// askRights asks for the rights in chats that are due. A chat that cannot be asked is asked again later.
func (c credentials) askRights(ctx context.Context, workspace string) error {
	chats, err := c.store.ListUnaskedChats(ctx, workspace, mostAsked)
	if err != nil {
		return err
	}
	bots := monitor.Bots{Credentials: c.vault, Adapters: c.adapters}
	for _, chat := range chats {
		right, err := bots.Rights(ctx, workspace, chat)
		if err == nil {
			_, err = c.store.RecordChatRights(ctx, workspace, chat, right)
		}
		if err != nil && ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

var (
	_ api.Credentials = credentials{}
	_ web.Accounts    = credentials{}
)
