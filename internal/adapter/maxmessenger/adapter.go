package maxmessenger

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

// DefaultBaseURL is MAX's own server. The Russian national authority issued its certificate, so the
// client needs that authority's bundle.
const DefaultBaseURL = "https://platform-api2.max.ru"

// Config configures an adapter.
type Config struct {
	// BaseURL is the URL before /messages; [DefaultBaseURL] if empty.
	BaseURL string
	// Client is required. It also calls the upload hosts.
	Client adapter.Doer
}

// Adapter sends deliveries to MAX. It is safe for concurrent use.
type Adapter struct {
	base   *url.URL
	client adapter.Doer
}

// New makes an adapter. It makes no call. The error says that the base URL is not an http or https URL.
func New(cfg Config) (*Adapter, error) {
	base, err := adapter.Base(cmp.Or(cfg.BaseURL, DefaultBaseURL))
	if err != nil {
		return nil, fmt.Errorf("max base URL: %w", err)
	}
	return &Adapter{base: base, client: cfg.Client}, nil
}

// Platform implements autopost.Adapter.
func (*Adapter) Platform() autopost.Platform { return autopost.MAX }

// Send implements autopost.Adapter.
func (a *Adapter) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	s, failure := a.sender(call)
	if failure != nil {
		return autopost.Failed(*failure)
	}
	return adapter.Run(ctx, call, s.step)
}

// sender makes the calls of one delivery.
type sender struct {
	adapter *Adapter
	call    autopost.Call
	hide    adapter.Redactor
	chat    string
	// disableNotification is the channel's setting.
	disableNotification bool
	// chatType is MAX's type of the chat; "" until it is needed.
	chatType string
}

func (a *Adapter) sender(call autopost.Call) (*sender, *autopost.Error) {
	s := &sender{adapter: a, call: call, hide: adapter.Hide(call.Secret)}
	return s, s.prepare()
}

// usable checks that the token can be sent in a header.
func (s *sender) usable() *autopost.Error {
	if s.call.Secret.IsZero() {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, "the bot token is missing")
	}
	if strings.ContainsFunc(s.call.Secret.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeUnauthorized, "the token must consist of printable ASCII characters")
	}
	return nil
}

// prepare checks the token and parses the target and the channel's settings.
func (s *sender) prepare() *autopost.Error {
	if failure := s.usable(); failure != nil {
		return failure
	}
	chat, err := strconv.ParseInt(s.call.Delivery.TargetID, 10, 64)
	if err != nil {
		return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "max_chat_invalid", "the target must be a chat id")
	}
	s.chat = strconv.FormatInt(chat, 10)
	var settings struct {
		DisableNotification bool `json:"disable_notification"`
	}
	if raw := s.call.Delivery.Settings; len(raw) > 0 {
		if err := json.Unmarshal(raw, &settings); err != nil {
			return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeValidationFailed,
				s.hide.Text(fmt.Sprintf("channel settings: %v", err)))
		}
	}
	s.disableNotification = settings.DisableNotification
	return nil
}

var (
	_ autopost.Adapter  = (*Adapter)(nil)
	_ autopost.Uploader = (*Adapter)(nil)
)
