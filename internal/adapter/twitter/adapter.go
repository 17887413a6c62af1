package twitter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// DefaultBaseURL is the base URL of the real API.
const DefaultBaseURL = "https://api.x.com"

const (
	// reservedLength is the longest post by weight, ten less than X's limit. A channel's
	// max_weighted_length replaces it.
	reservedLength = 270
	maxAltText     = 1000 // characters
	// settleTime is the observed delay of timelines.
	settleTime = time.Minute
)

// Config configures an adapter.
type Config struct {
	// BaseURL is the address above /2; [DefaultBaseURL] when empty.
	BaseURL string
	// Client makes the calls. Required.
	Client adapter.Doer
}

// Adapter sends deliveries to X. It is safe for concurrent use.
type Adapter struct {
	base   *url.URL
	client adapter.Doer
	// old is true after X understood only the old names of fields.
	old atomic.Bool
}

// New returns an adapter. It makes no request.
func New(cfg Config) (*Adapter, error) {
	base, err := adapter.Base(cmp.Or(cfg.BaseURL, DefaultBaseURL))
	if err != nil {
		return nil, fmt.Errorf("x base URL: %w", err)
	}
	return &Adapter{base: base, client: cfg.Client}, nil
}

// Platform implements autopost.Adapter.
func (*Adapter) Platform() autopost.Platform { return autopost.X }

// Send implements autopost.Adapter.
func (a *Adapter) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	s, failure := a.sender(call)
	if failure == nil {
		failure = s.check()
	}
	if failure != nil {
		return autopost.Failed(*failure)
	}
	outcome := adapter.Run(ctx, call, s.step)
	outcome.Used = s.used
	return outcome
}

// sender makes the calls of one delivery.
type sender struct {
	adapter  *Adapter
	call     autopost.Call
	signer   signer
	hide     adapter.Redactor
	settings settings
	used     autopost.Used
}

// The names under which paid calls are counted. Posts are counted by the database.
const (
	useMetadata  = "media_metadata"
	useOwnedRead = "owned_read"
)

// settings are the channel settings that the adapter reads.
type settings struct {
	MadeWithAI            bool   `json:"made_with_ai"`
	PaidPartnership       bool   `json:"paid_partnership"`
	ForSuperFollowersOnly bool   `json:"for_super_followers_only"`
	ShareWithFollowers    bool   `json:"share_with_followers"`
	CommunityID           string `json:"community_id"`
	ReplySettings         string `json:"reply_settings"`
	// MaxWeightedLength is the longest post of the account, by weight.
	MaxWeightedLength int `json:"max_weighted_length"`
}

// everyone is our name for X's default, an absent reply_settings.
const everyone = "everyone"

// withPost returns the settings for a post. The fields of the post take precedence.
func (s settings) withPost(post autopost.Post) settings {
	if post.MadeWithAI != nil {
		s.MadeWithAI = *post.MadeWithAI
	}
	if post.PaidPartnership != nil {
		s.PaidPartnership = *post.PaidPartnership
	}
	s.ReplySettings = cmp.Or(post.ReplySettings, s.ReplySettings)
	if s.ReplySettings == everyone {
		s.ReplySettings = ""
	}
	return s
}

var replySettings = []string{"", "following", "mentionedUsers", "subscribers", "verified"}

// account matches the id or the name of a user.
var account = regexp.MustCompile(`^(?:[0-9]{1,19}|@?[A-Za-z0-9_]{1,15})$`)

// postID matches the id of a post.
var postID = regexp.MustCompile(`^[0-9]{1,19}$`)

// authorised returns a sender that has a credential and no target.
func (a *Adapter) authorised(call autopost.Call) (*sender, *autopost.Error) {
	signer, secrets, failure := readCredential(call.Secret)
	if failure != nil {
		return nil, failure
	}
	return &sender{adapter: a, call: call, signer: signer, hide: adapter.Hide(secrets...)}, nil
}

// sender returns a sender for a delivery. It checks the target and the settings.
func (a *Adapter) sender(call autopost.Call) (*sender, *autopost.Error) {
	s, failure := a.authorised(call)
	if failure != nil {
		return nil, failure
	}
	if !account.MatchString(call.Delivery.TargetID) {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "x_account_invalid", "the target must be the id or the name of an account")
	}
	if raw := call.Delivery.Settings; len(raw) > 0 {
		if err := json.Unmarshal(raw, &s.settings); err != nil {
			return nil, s.misconfigured(err.Error())
		}
	}
	s.settings = s.settings.withPost(call.Delivery.RenderMeta.Post)
	switch {
	case !slices.Contains(replySettings, s.settings.ReplySettings):
		return nil, s.misconfigured("reply_settings must be one of everyone, " + strings.Join(replySettings[1:], ", "))
	case s.settings.MaxWeightedLength < 0:
		return nil, s.misconfigured("max_weighted_length must be positive: set the longest post of the account, or remove it")
	case s.settings.MaxWeightedLength == 0:
		s.settings.MaxWeightedLength = reservedLength
	}
	return s, nil
}

func (s *sender) misconfigured(why string) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeValidationFailed, s.hide.Text("channel settings: "+why))
}

func invalid(format string, args ...any) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, fmt.Sprintf(format, args...))
}

// check refuses before the first call what X would refuse later, so that no thread ends in the middle.
func (s *sender) check() *autopost.Error {
	for _, step := range s.call.Delivery.RenderMeta.Steps {
		if length := weight(s.text(step)); length > s.settings.MaxWeightedLength {
			return invalid("step %s has a weighted length of %d, the limit is %d: shorten it, or set long_text for the channel",
				step.Name, length, s.settings.MaxWeightedLength)
		}
		if strings.TrimSpace(s.text(step)) == "" && len(step.Items) == 0 {
			return invalid("step %s has neither text nor media", step.Name)
		}
		for _, index := range step.Items {
			medium, failure := adapter.Item(s.call.Delivery, index)
			if failure != nil {
				return failure
			}
			if failure := checkMedium(fmt.Sprintf("media[%d]", index), medium); failure != nil {
				return failure
			}
		}
	}
	return nil
}

// checkMedium returns the reason why X would refuse a medium; nil if there is none.
func checkMedium(name string, medium autopost.Media) *autopost.Error {
	if len(categories[medium.Type]) == 0 {
		return invalid("%s must be an image, a video or an animation", name)
	}
	if n := len([]rune(medium.Alt)); n > maxAltText {
		return invalid("%s.alt must have at most %[3]d characters, got %[2]d: shorten it", name, n, maxAltText)
	}
	return nil
}

// text is the text of a step. A step without text gets the captions of its media: X has no captions.
func (s *sender) text(step autopost.Step) string {
	if step.Text {
		return s.call.Delivery.StepText(step)
	}
	var captions []string
	for _, caption := range step.Captions {
		if caption != nil {
			captions = append(captions, *caption)
		}
	}
	return strings.Join(captions, "\n\n")
}

// request builds a signed request. body is JSON, or nil.
func (s *sender) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, *autopost.Error) {
	target := s.adapter.base.JoinPath(path)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the base URL is not valid")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	s.signer.sign(req)
	return req, nil
}

// get reads the answer of a GET request into into.
func (s *sender) get(ctx context.Context, path string, query url.Values, into any) *autopost.Error {
	req, failure := s.request(ctx, http.MethodGet, path, query, nil)
	if failure != nil {
		return failure
	}
	return s.exchange(req, into)
}

// exchange makes a call that creates no post. Its failures are definite.
func (s *sender) exchange(req *http.Request, into any) *autopost.Error {
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	switch {
	case failure != nil:
		return definite(failure)
	case answer.Status >= 300:
		return refused(answer, s.hide)
	case into != nil && json.Unmarshal(answer.Body, into) != nil:
		return unreadable(answer, s.hide)
	}
	return nil
}

var (
	_ autopost.Adapter    = (*Adapter)(nil)
	_ autopost.Reconciler = (*Adapter)(nil)
	_ autopost.Deleter    = (*Adapter)(nil)
	_ autopost.Uploader   = (*Adapter)(nil)
)
