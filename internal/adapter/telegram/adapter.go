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

// DefaultBaseURL is Telegram's own server; a self-hosted one has the same paths.
const DefaultBaseURL = "https://api.telegram.org"

// Config configures an adapter.
type Config struct {
	// BaseURL is where /bot<token>/<method> begins; [DefaultBaseURL] when empty.
	BaseURL string
	// Client makes the calls. Required.
	Client adapter.Doer
}

// Adapter sends deliveries to Telegram. It is safe for concurrent use.
type Adapter struct {
	base   *url.URL
	client adapter.Doer
}

// New makes an adapter, without effect on the outside.
func New(cfg Config) (*Adapter, error) {
	base, err := adapter.Base(cmp.Or(cfg.BaseURL, DefaultBaseURL))
	if err != nil {
		return nil, fmt.Errorf("telegram base URL: %w", err)
	}
	return &Adapter{base: base, client: cfg.Client}, nil
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

// sender sends one delivery.
type sender struct {
	adapter *Adapter
	call    autopost.Call
	hide    adapter.Redactor
	// common are the parameters that every call of the delivery has.
	common []param
}

func (a *Adapter) sender(call autopost.Call) (*sender, *autopost.Error) {
	s := &sender{adapter: a, call: call, hide: adapter.Hide(call.Secret)}
	if call.Secret.IsZero() {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, "there is no bot token")
	}
	return s, s.prepare()
}

// prepare reads the target ("chat" or "chat:thread") and the channel's settings.
func (s *sender) prepare() *autopost.Error {
	chat, thread, threaded := strings.Cut(s.call.Delivery.TargetID, ":")
	if id, err := strconv.ParseInt(chat, 10, 64); err == nil {
		s.common = append(s.common, param{"chat_id", id})
	} else if strings.HasPrefix(chat, "@") {
		s.common = append(s.common, param{"chat_id", chat})
	} else {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "tg_chat_not_found", "the target is neither a chat id nor an @name")
	}
	if threaded {
		id, err := strconv.ParseInt(thread, 10, 64)
		if err != nil {
			return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "tg_chat_not_found", "the target's thread is not a number")
		}
		s.common = append(s.common, param{"message_thread_id", id})
	}
	var settings struct {
		DisableNotification bool `json:"disable_notification"`
		ProtectContent      bool `json:"protect_content"`
	}
	if raw := s.call.Delivery.Settings; len(raw) > 0 {
		if err := json.Unmarshal(raw, &settings); err != nil {
			return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeValidationFailed,
				s.hide.Text(fmt.Sprintf("channel settings: %v", err)))
		}
	}
	if settings.DisableNotification {
		s.common = append(s.common, param{"disable_notification", true})
	}
	if settings.ProtectContent {
		s.common = append(s.common, param{"protect_content", true})
	}
	return nil
}

var _ autopost.Adapter = (*Adapter)(nil)
