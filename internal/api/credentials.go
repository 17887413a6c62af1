package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"autopost"
	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

const (
	// CallbackPath is where platforms answer to the link of an account.
	CallbackPath = "/oauth/callback"
	// MostTargets limits the chats in one check of a credential.
	MostTargets = 200
)

// Credentials asks platforms about credentials, and stores them sealed.
type Credentials interface {
	// Try asks about a secret that is not stored. fault says what is wrong with its form; failure is the answer of the
	// platform. Both are nil if the platform accepts it, or if it cannot be asked without using the secret up.
	Try(ctx context.Context, platform autopost.Platform, secret autopost.Secret, targets []string) (info autopost.CredentialInfo, failure *autopost.Error, fault error)
	// Put seals and stores a secret.
	Put(ctx context.Context, a rest.OperatorAction, put NewSecret) (rest.Written, error)
	// PlatformOf returns "" for a credential that does not exist.
	PlatformOf(ctx context.Context, workspace, authRef string) (autopost.Platform, error)
	// Check asks about a credential and its rights in the chats of its channels, and records the answer.
	Check(ctx context.Context, workspace, authRef string, platform autopost.Platform) (autopost.CredentialInfo, *autopost.Error, error)
	// Link returns the address on which the owner of an account allows the app.
	Link(ctx context.Context, a rest.OperatorAction, link NewLink) (address string, written rest.Written, err error)
	// Discover reads the waiting updates of a bot and records its chats and rights. polled is false if the platform sends
	// the updates here.
	Discover(ctx context.Context, workspace, authRef string, platform autopost.Platform) (polled bool, failure *autopost.Error, err error)
}

// NewSecret is a secret to store.
type NewSecret struct {
	AuthRef  string
	Platform autopost.Platform
	Secret   autopost.Secret
	// Hosts get a secret of platform http; nil: as before.
	Hosts []string
	// ValidFor is 0 if unknown.
	ValidFor time.Duration
	// MadeBy is "set" (default) or "link".
	MadeBy string
}

// NewLink connects an account. App is the JSON of the app; a zero App is that of the stored secret.
type NewLink struct {
	AuthRef  string
	Platform autopost.Platform
	App      autopost.Secret
	// Redirect is the address for the answer of the platform; "" for that of the daemon.
	Redirect string
	// Requeue sends again what failed because of the old secret.
	Requeue bool
}

// WrongApp returns the problem of an app that cannot be used.
func WrongApp(reason string) error {
	return rest.Wrong("body.client_id", reason, "send client_id and client_secret")
}

type credential struct {
	AuthRef       string          `json:"auth_ref" example:"bot"`
	Platform      string          `json:"platform" example:"telegram"`
	KeptIn        string          `json:"kept_in" enum:"env,file,sealed" example:"sealed" doc:"The kind of storage of the secret. The secret is never returned."`
	Hosts         []string        `json:"hosts" nullable:"false" doc:"The hosts that get a secret of platform http."`
	RotatedAt     instant         `json:"rotated_at" nullable:"true"`
	Channels      int             `json:"channels" example:"3" doc:"Channels that use it."`
	Held          int             `json:"held" doc:"How many of them wait because it was refused."`
	AuthLostAt    instant         `json:"auth_lost_at" nullable:"true" doc:"When it was last refused."`
	Uses          []credentialUse `json:"uses" nullable:"false" doc:"What uses it, at most 500 objects."`
	Account       *string         `json:"account" nullable:"true" example:"@news_bot" doc:"The account by the platform; null before the first check."`
	CheckedAt     instant         `json:"checked_at" nullable:"true" doc:"The last check."`
	Rights        []right         `json:"rights" nullable:"false" doc:"May it post there? By the last check."`
	Error         map[string]any  `json:"error" nullable:"true" doc:"The error of the last check or renewal."`
	LostAt        instant         `json:"lost_at" nullable:"true" doc:"Since when the platform refuses it; null if it does not."`
	ValidUntil    instant         `json:"valid_until" nullable:"true" doc:"When the secret expires; null if unknown."`
	RefreshedAt   instant         `json:"refreshed_at" nullable:"true" doc:"The last automatic renewal."`
	NextRefreshAt instant         `json:"next_refresh_at" nullable:"true" doc:"The next automatic renewal; null without one."`
	Failures      int             `json:"failures" doc:"Failed renewals in a row."`
	UpdatedAt     time.Time       `json:"updated_at"`
}

type credentialUse struct {
	Kind string `json:"kind" enum:"channel,endpoint,source,webhook,alert_target,moderation_chat" example:"channel" doc:"The kind of the object."`
	ID   string `json:"id" example:"news-ru" doc:"Its id."`
}

type right struct {
	Target  string `json:"target" example:"-1001234567890" doc:"The chat or account."`
	Title   string `json:"title,omitempty" example:"Demo shop" doc:"Its name by the platform."`
	MayPost bool   `json:"may_post" doc:"The credential may post there."`
	Reason  string `json:"reason,omitempty" doc:"Why it may not, and the remedy."`
}

// standing is the answer of a platform about a credential.
type standing struct {
	OK      bool    `json:"ok" doc:"The platform accepts the credential."`
	Account string  `json:"account" example:"@news_bot" doc:"The account by the platform; empty if it could not be asked."`
	Rights  []right `json:"rights" nullable:"false" doc:"May it post there?"`
	Code    string  `json:"code,omitempty" example:"tg_unauthorized" doc:"The code of the refusal."`
	Message string  `json:"message,omitempty" doc:"Why the platform refuses it, or why it was not asked."`
}

func standingOf(info autopost.CredentialInfo, failure *autopost.Error) standing {
	s := standing{OK: failure == nil, Account: info.Account, Rights: []right{}}
	for _, r := range info.Rights {
		s.Rights = append(s.Rights, right{r.Target, r.Title, r.MayPost, r.Reason})
	}
	if failure != nil {
		s.Code, s.Message = failure.Code, failure.Message
	}
	return s
}

func replyWith(value any) (rest.Reply, error) {
	body, err := json.Marshal(value)
	return rest.Reply{Body: body}, err
}

func registerCredentials(d *server, c Credentials) {
	listOf[credential](d, "credential", "auth_ref", "credentials", "/credentials", "List credentials with their health")
	rest.Register(d.Server, rest.Operation{
		ID: "requeue-credential", Method: http.MethodPost, Path: "/credentials/{id}/requeue", Summary: "Continue with a restored credential", Answer: changed{}, Example: reasonExample,
		Description: "Channels that wait because the credential was refused continue. Deliveries that failed because of it are requeued, the oldest 1,000 per request.",
	}, func(ctx context.Context, in *actInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: why(in.Body), DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RequeueAuthLost(ctx, a, in.ID)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "remove-credential", Method: http.MethodDelete, Path: "/credentials/{id}", Summary: "Remove a credential", Answer: put{},
		Description: "Only one that nothing uses (uses). Its sealed secrets are deleted. The reason is in X-Autopost-Reason.",
	}, func(ctx context.Context, in *struct {
		rest.AuditedWrite
		rest.Dry
		IDPath
	}) (rest.Reply, error) {
		in.HeaderReason = cmp.Or(in.HeaderReason, "removed")
		return d.Do(ctx, in.AuditedWrite, rest.Change{DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.RemoveCredential(ctx, a, in.ID)
		})
	})
	registerSecrets(d, c)
	registerChecks(d, c)
	registerLinks(d, c)
}

// SecretBody is the body of a new secret.
type SecretBody struct {
	Platform     string   `json:"platform,omitempty" example:"telegram" doc:"Required for a new credential; it never changes."`
	Secret       string   `json:"secret" minLength:"1" maxLength:"20000" format:"password" example:"1234567:AAExampleToken-ExampleToken-Exam" doc:"The secret: the token of a bot, the JSON of an app with its tokens, or the key. It is sealed and never returned."`
	Hosts        []string `json:"hosts,omitempty" example:"[\"api.example.com\"]" doc:"The hosts that get a secret of platform http; required for it."`
	ValidSeconds int      `json:"valid_seconds,omitempty" minimum:"1" maximum:"315360000" doc:"How long the secret is valid. An alert warns before it ends."`
	Unchecked    bool     `json:"unchecked,omitempty" doc:"true stores it although the platform refuses it or does not answer."`
	Requeue      bool     `json:"requeue,omitempty" doc:"true sends again what failed because the old secret was refused, the oldest 1,000 deliveries."`
	rest.Reasoned
}

type secretInput struct {
	rest.AuditedWrite
	rest.Dry
	IDPath
	Body SecretBody
}

// secretStored is the answer to a new secret.
type secretStored struct {
	Applied  bool     `json:"applied"`
	DryRun   bool     `json:"dry_run"`
	Created  bool     `json:"created"`
	Version  int      `json:"version" example:"2" doc:"The version of the sealed secret."`
	Resumed  int      `json:"resumed,omitempty" doc:"Channels that waited for it and continue."`
	AuthLost int      `json:"auth_lost,omitempty" doc:"Deliveries that failed because of the old secret, before this request."`
	Requeued int      `json:"requeued,omitempty" doc:"How many of them are sent again."`
	Account  string   `json:"account,omitempty" example:"@news_bot" doc:"The account by the platform."`
	_        struct{} `additionalProperties:"true"`
}

func registerSecrets(d *server, c Credentials) {
	rest.Register(d.Server, rest.Operation{
		ID: "set-credential", Method: http.MethodPost, Path: "/credentials/{id}/secret", Summary: "Store the secret of a credential", Answer: secretStored{},
		Example: map[string]any{"platform": "webhook", "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "reason": "a new key"},
		Description: "Creates the credential if it does not exist. The platform is asked first; a secret that it refuses is not stored (problem secret-refused). " +
			"Channels that wait because of the old secret continue at once.",
	}, func(ctx context.Context, in *secretInput) (rest.Reply, error) { return d.setCredential(ctx, c, in) })
}

func (d *server) setCredential(ctx context.Context, c Credentials, in *secretInput) (rest.Reply, error) {
	if reply, err := d.Repeated(ctx, in.Once); err != nil || reply != nil {
		return *cmp.Or(reply, &rest.Reply{}), err
	}
	if _, err := in.Why(in.Body.Reason); err != nil {
		return rest.Reply{}, err
	}
	platform, err := d.platformOf(ctx, c, in.ID, in.Body.Platform)
	if err != nil {
		return rest.Reply{}, err
	}
	put := NewSecret{AuthRef: in.ID, Platform: platform, Secret: autopost.NewSecret(in.Body.Secret), Hosts: in.Body.Hosts, ValidFor: time.Duration(in.Body.ValidSeconds) * time.Second}
	info, failure, fault := c.Try(ctx, platform, put.Secret, nil)
	switch {
	case fault != nil:
		return rest.Reply{}, rest.Wrong("body.secret", "is malformed: "+fault.Error(), "copy all of it")
	case failure != nil && !in.Body.Unchecked:
		p := problem.SecretRefused.Says("The platform does not accept the secret: %s", failure.Message)
		p.Reason = failure.Code
		return rest.Reply{}, p
	}
	requeued := 0
	reply, err := d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, DryRun: in.DryRun, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
		written, err := c.Put(ctx, a, put)
		if err != nil || !in.Body.Requeue || a.DryRun {
			return written, err
		}
		a.Once = rest.OnceKey{}
		requeued, err = d.requeueLost(ctx, a, in.ID, written)
		return written, err
	})
	return once(reply, err, map[string]any{"account": info.Account, "requeued": requeued})
}

// requeueLost sends again what failed because of the secret that another has replaced.
func (d *server) requeueLost(ctx context.Context, a rest.OperatorAction, authRef string, written rest.Written) (int, error) {
	var stored struct {
		AuthLost int `json:"auth_lost"`
		Requeued int `json:"requeued"`
	}
	if err := json.Unmarshal(written.Answer, &stored); err != nil || stored.AuthLost == 0 {
		return 0, err
	}
	again, err := d.db.RequeueAuthLost(ctx, a, authRef)
	if err != nil {
		return 0, err
	}
	return stored.Requeued, json.Unmarshal(again.Answer, &stored)
}

// platformOf returns the platform of a credential, or the given one for a new credential.
func (d *server) platformOf(ctx context.Context, c Credentials, id, given string) (autopost.Platform, error) {
	platform, err := c.PlatformOf(ctx, rest.Caller(ctx).WorkspaceID, id)
	switch {
	case err != nil:
		return "", d.Fault(ctx, err)
	case platform == "" && given == "":
		return "", rest.Wrong("body.platform", "must be set for a new credential", "send telegram, max, x, youtube, webhook, smtp, http or postgres")
	case platform == "":
		return autopost.Platform(given), nil
	case given != "" && given != string(platform):
		return "", rest.Wrong("body.platform", "must be "+string(platform)+", the platform of this credential", "use another name for the new credential")
	}
	return platform, nil
}

// known returns the platform of a credential that exists.
func (d *server) known(ctx context.Context, c Credentials, id string) (autopost.Platform, error) {
	platform, err := c.PlatformOf(ctx, rest.Caller(ctx).WorkspaceID, id)
	if err != nil {
		return "", d.Fault(ctx, err)
	}
	if platform == "" {
		return "", rest.NotFound("This workspace has no such credential.")
	}
	return platform, nil
}

type testInput struct {
	Body struct {
		Platform string   `json:"platform" example:"telegram" doc:"The platform of the secret."`
		Secret   string   `json:"secret" minLength:"1" maxLength:"20000" format:"password" example:"1234567:AAExampleToken-ExampleToken-Exam" doc:"The secret. It is not stored."`
		Targets  []string `json:"targets,omitempty" maxItems:"20" example:"[\"-1001234567890\"]" doc:"Chats to ask about: may it post there?"`
	}
}

type discovered struct {
	Polled  bool   `json:"polled" doc:"Updates were read here. false: the platform sends them to AUTOPOST_PUBLIC_URL, or the bot could not be asked."`
	Code    string `json:"code,omitempty" example:"tg_conflict" doc:"The code of the refusal."`
	Message string `json:"message,omitempty" doc:"Why the updates could not be read."`
}

func registerChecks(d *server, c Credentials) {
	rest.Register(d.Server, rest.Operation{
		ID: "test-credential", Method: http.MethodPost, Path: "/credentials/test", Summary: "Ask the platform about a secret", Answer: standing{},
		Example:     map[string]any{"platform": "webhook", "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
		Description: "Nothing is stored. A refused secret is an answer with ok false.",
	}, func(ctx context.Context, in *testInput) (rest.Reply, error) {
		info, failure, fault := c.Try(ctx, autopost.Platform(in.Body.Platform), autopost.NewSecret(in.Body.Secret), in.Body.Targets)
		s := standingOf(info, failure)
		if fault != nil {
			s.OK, s.Code, s.Message = false, autopost.CodeValidationFailed, fault.Error()
		}
		return replyWith(s)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "check-credential", Method: http.MethodPost, Path: "/credentials/{id}/check", Summary: "Check a credential now", Answer: standing{},
		Description: "Asks the platform for the account and for the rights in the chats of its channels, and records the answer. It posts and changes nothing there.",
	}, func(ctx context.Context, in *IDPath) (rest.Reply, error) {
		platform, err := d.known(ctx, c, in.ID)
		if err != nil {
			return rest.Reply{}, err
		}
		info, failure, err := c.Check(ctx, rest.Caller(ctx).WorkspaceID, in.ID, platform)
		if err != nil {
			return rest.Reply{}, d.Fault(ctx, err)
		}
		return replyWith(standingOf(info, failure))
	})
	rest.Register(d.Server, rest.Operation{
		ID: "discover-chats", Method: http.MethodPost, Path: "/credentials/{id}/discover", Summary: "Look for the chats of a bot", Answer: discovered{},
		Description: "Reads the waiting updates of the bot, if AUTOPOST_PUBLIC_URL is not set, and asks for its rights. GET /api/v1/chats lists what was found.",
	}, func(ctx context.Context, in *IDPath) (rest.Reply, error) {
		platform, err := d.known(ctx, c, in.ID)
		if err != nil {
			return rest.Reply{}, err
		}
		if platform != autopost.Telegram && platform != autopost.MAX {
			return rest.Reply{}, problem.Refused.Says("Only bots of telegram and max have chats.")
		}
		polled, failure, err := c.Discover(ctx, rest.Caller(ctx).WorkspaceID, in.ID, platform)
		if err != nil {
			return rest.Reply{}, d.Fault(ctx, err)
		}
		found := discovered{Polled: polled}
		if failure != nil {
			found.Code, found.Message = failure.Code, failure.Message
		}
		return replyWith(found)
	})
}

type linkInput struct {
	rest.AuditedWrite
	IDPath
	Body struct {
		Platform     string `json:"platform,omitempty" enum:"x,youtube" example:"x" doc:"Required for a new credential."`
		ClientID     string `json:"client_id,omitempty" maxLength:"1000" example:"autopost-app" doc:"The app; without it that of the stored secret."`
		ClientSecret string `json:"client_secret,omitempty" maxLength:"1000" format:"password" doc:"The secret of the app; public apps of X have none."`
		RedirectURI  string `json:"redirect_uri,omitempty" maxLength:"1000" example:"https://autopost.example.org/oauth/callback" doc:"The address of this daemon for the browser, with the path /oauth/callback. It must be registered for the app."`
		Requeue      bool   `json:"requeue,omitempty" doc:"true sends again what failed because of the old secret."`
		rest.Reasoned
	}
}

type linkBegun struct {
	Applied   bool      `json:"applied"`
	ExpiresAt time.Time `json:"expires_at"`
	URL       string    `json:"url,omitempty" example:"https://x.com/i/oauth2/authorize?client_id=autopost-app" doc:"Open it in the browser of the account's owner. It is returned once; a repeated request gets none."`
}

func registerLinks(d *server, c Credentials) {
	rest.Register(d.Server, rest.Operation{
		ID: "link-credential", Method: http.MethodPost, Path: "/credentials/{id}/link", Summary: "Connect an account of X or YouTube", Answer: linkBegun{},
		Example: map[string]any{"platform": "x", "client_id": "autopost-app", "reason": "a new account"},
		Description: "Returns the address on which the owner of the account allows the app. The platform then answers to GET /oauth/callback within ten minutes, and the secret is stored. " +
			"A link that a person begins ends in the same browser session.",
	}, func(ctx context.Context, in *linkInput) (rest.Reply, error) {
		b := in.Body
		platform, err := d.platformOf(ctx, c, in.ID, b.Platform)
		if err != nil {
			return rest.Reply{}, err
		}
		if platform != autopost.X && platform != autopost.YouTube {
			return rest.Reply{}, rest.Wrong("body.platform", "must be x or youtube", "send a secret for other platforms")
		}
		if to, err := url.Parse(b.RedirectURI); err != nil || b.RedirectURI != "" && (to.Path != CallbackPath || to.Host == "" || to.Scheme != "http" && to.Scheme != "https") {
			return rest.Reply{}, rest.Wrong("body.redirect_uri", "must be an address with the path "+CallbackPath, "send the address of this daemon")
		}
		link := NewLink{AuthRef: in.ID, Platform: platform, Redirect: b.RedirectURI, Requeue: b.Requeue}
		if b.ClientID != "" {
			app, err := json.Marshal(map[string]string{"client_id": b.ClientID, "client_secret": b.ClientSecret})
			if err != nil {
				return rest.Reply{}, err
			}
			link.App = autopost.NewSecret(string(app))
		}
		address := ""
		reply, err := d.Do(ctx, in.AuditedWrite, rest.Change{Reason: b.Reason, Subject: in.ID}, func(ctx context.Context, a rest.OperatorAction) (written rest.Written, err error) {
			address, written, err = c.Link(ctx, a, link)
			return written, err
		})
		return once(reply, err, map[string]any{"url": address})
	})
}
