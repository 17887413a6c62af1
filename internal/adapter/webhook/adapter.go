package webhook

import (
	"context"
	"encoding/json"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/outbound"
)

// Platform is the key of the platform's row in autopost.platforms.
const Platform autopost.Platform = "webhook"

// maxInline is the maximum of the setting inline_media_bytes: a call is kept in memory.
const maxInline = 1 << 20

// Config configures an adapter.
type Config struct {
	// Client makes the calls. It must be a guarded client, because tenants choose the addresses.
	// Required.
	Client adapter.Doer
}

// Adapter sends deliveries to the channels' addresses. It is safe for concurrent use.
type Adapter struct{ client adapter.Doer }

// New returns an adapter. It has no effects.
func New(cfg Config) *Adapter { return &Adapter{client: cfg.Client} }

// Platform implements autopost.Adapter.
func (*Adapter) Platform() autopost.Platform { return Platform }

// Send implements autopost.Adapter.
func (a *Adapter) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	s := sender{client: a.client, call: call, hide: adapter.Hide(call.Secret)}
	if failure := s.prepare(); failure != nil {
		return autopost.Failed(*failure)
	}
	return adapter.Run(ctx, call, s.step)
}

// sender sends one delivery.
type sender struct {
	client adapter.Doer
	call   autopost.Call
	hide   adapter.Redactor
	key    outbound.SigningKey
	inline int64
}

// prepare checks the channel's secret, target and settings before anything is sent. All its failures
// are permanent and concern the channel.
func (s *sender) prepare() *autopost.Error {
	if s.call.Secret.IsZero() {
		return misconfigured(autopost.CodeCredentialMissing, "the signing secret is missing")
	}
	var err error
	if s.key, err = outbound.ReadSigningKey(s.call.Secret); err != nil {
		return misconfigured("webhook_secret_invalid", err.Error())
	}
	target, err := url.Parse(s.call.Delivery.TargetID)
	if err != nil || (target.Scheme != "https" && target.Scheme != "http") || target.Host == "" || target.User != nil || target.Fragment != "" {
		return misconfigured("webhook_target_invalid", "the target must be an https address without user and fragment")
	}
	settings := struct {
		InlineMediaBytes int64 `json:"inline_media_bytes"`
	}{}
	if raw := s.call.Delivery.Settings; len(raw) > 0 {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil || settings.InlineMediaBytes < 0 || settings.InlineMediaBytes > maxInline {
		return misconfigured(autopost.CodeValidationFailed, "settings.inline_media_bytes must be a whole number from 0 to 1048576")
	}
	s.inline = settings.InlineMediaBytes
	return nil
}

func misconfigured(code, message string) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, code, message)
}

var _ autopost.Adapter = (*Adapter)(nil)
