package webhook

import (
	"context"
	"encoding/json"
	"net/url"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/outbound/signed"
)

// Platform is the row of autopost.platforms that this adapter speaks for.
const Platform autopost.Platform = "webhook"

// maxInline bounds the setting inline_media_bytes: a call is held in memory whole.
const maxInline = 1 << 20

// Config configures an adapter.
type Config struct {
	// Client makes the calls. The addresses are tenants' own, so it is to guard them. Required.
	Client adapter.Doer
}

// Adapter sends deliveries to the addresses that channels name. It is safe for concurrent use.
type Adapter struct{ client adapter.Doer }

// New makes an adapter, without effect on the outside.
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
	key    signed.Key
	inline int64
}

// prepare finds what is wrong before anything leaves. None of it mends itself, and all of it is the channel's.
func (s *sender) prepare() *autopost.Error {
	if s.call.Secret.IsZero() {
		return misconfigured(autopost.CodeCredentialMissing, "there is no signing secret")
	}
	var err error
	if s.key, err = signed.ReadKey(s.call.Secret); err != nil {
		return misconfigured("webhook_secret_invalid", err.Error())
	}
	target, err := url.Parse(s.call.Delivery.TargetID)
	if err != nil || (target.Scheme != "https" && target.Scheme != "http") || target.Host == "" || target.User != nil || target.Fragment != "" {
		return misconfigured("webhook_target_invalid", "the target is not an https address without user and fragment")
	}
	settings := struct {
		InlineMediaBytes int64 `json:"inline_media_bytes"`
	}{}
	if raw := s.call.Delivery.Settings; len(raw) > 0 {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil || settings.InlineMediaBytes < 0 || settings.InlineMediaBytes > maxInline {
		return misconfigured(autopost.CodeValidationFailed, "settings.inline_media_bytes is no whole number from 0 to 1048576")
	}
	s.inline = settings.InlineMediaBytes
	return nil
}

func misconfigured(code, message string) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, code, message)
}

var _ autopost.Adapter = (*Adapter)(nil)
