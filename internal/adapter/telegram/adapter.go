package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// DefaultBaseURL is Telegram's own server. A self-hosted server has the same paths.
const DefaultBaseURL = "https://api.telegram.org"

// Config configures an adapter.
type Config struct {
	// BaseURL is the URL before /bot<token>/<method>; [DefaultBaseURL] if empty.
	BaseURL string
	// Client is required.
	Client adapter.Doer
}

// Adapter sends deliveries to Telegram. It is safe for concurrent use.
type Adapter struct {
	base   *url.URL
	client adapter.Doer
	pauses pauses
}

// New makes an adapter. It makes no call. The error says that the base URL is not an http or https URL.
func New(cfg Config) (*Adapter, error) {
	base, err := adapter.Base(cmp.Or(cfg.BaseURL, DefaultBaseURL))
	if err != nil {
		return nil, fmt.Errorf("telegram base URL: %w", err)
	}
	return &Adapter{base: base, client: cfg.Client, pauses: defaultPauses}, nil
}

// Platform implements autopost.Adapter.
func (*Adapter) Platform() autopost.Platform { return autopost.Telegram }

// Send implements autopost.Adapter.
func (a *Adapter) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	s, failure := a.sender(call)
	if failure != nil {
		return autopost.Failed(*failure)
	}
	return adapter.Run(ctx, call, s.step)
}

// settings are the settings of a channel.
type settings struct {
	DisableNotification bool `json:"disable_notification"`
	ProtectContent      bool `json:"protect_content"`
	// HasSpoiler and ShowCaptionAboveMedia apply to photos, videos and animations.
	HasSpoiler            bool `json:"has_spoiler"`
	ShowCaptionAboveMedia bool `json:"show_caption_above_media"`
	// LinkPreview applies unless the post disables the preview.
	LinkPreview linkPreview `json:"link_preview_options"`
	// ServiceChatID is the chat to which Reconcile forwards messages; 0 if there is none.
	ServiceChatID int64 `json:"service_chat_id"`
}

// sender makes the calls of one delivery.
type sender struct {
	adapter  *Adapter
	call     autopost.Call
	hide     adapter.Redactor
	settings settings
	// chat is the target without its thread.
	chat string
	// common are the parameters of each send; the first one is the chat.
	common []param
}

func (a *Adapter) sender(call autopost.Call) (*sender, *autopost.Error) {
	s := &sender{adapter: a, call: call, hide: adapter.Hide(call.Secret)}
	if call.Secret.IsZero() {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, "the bot token is missing")
	}
	return s, s.prepare()
}

// prepare parses the target ("chat" or "chat:thread") and the channel's settings.
func (s *sender) prepare() *autopost.Error {
	var thread string
	var threaded bool
	s.chat, thread, threaded = strings.Cut(s.call.Delivery.TargetID, ":")
	if id, err := strconv.ParseInt(s.chat, 10, 64); err == nil {
		s.common = append(s.common, param{"chat_id", id})
	} else if strings.HasPrefix(s.chat, "@") {
		s.common = append(s.common, param{"chat_id", s.chat})
	} else {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeNoChat, "the target must be a chat id or an @name")
	}
	if threaded {
		id, err := strconv.ParseInt(thread, 10, 64)
		if err != nil {
			return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeNoChat, "the thread of the target must be a number")
		}
		s.common = append(s.common, param{"message_thread_id", id})
	}
	if raw := s.call.Delivery.Settings; len(raw) > 0 {
		if err := json.Unmarshal(raw, &s.settings); err != nil {
			return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeValidationFailed,
				s.hide.Text(fmt.Sprintf("channel settings: %v", err)))
		}
	}
	if s.settings.DisableNotification {
		s.common = append(s.common, param{"disable_notification", true})
	}
	if s.settings.ProtectContent {
		s.common = append(s.common, param{"protect_content", true})
	}
	return nil
}

var _ autopost.Adapter = (*Adapter)(nil)
