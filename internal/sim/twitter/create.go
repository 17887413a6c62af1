package twitter

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	duplicateWindow = 24 * time.Hour
	editWindow      = 30 * time.Minute
	maxEdits        = 5
	maxPhotos       = 4
	maxTagged       = 10
)

// newPost is the body of POST /2/tweets. Other fields are errors.
type newPost struct {
	Text  *string `json:"text"`
	Media *struct {
		MediaIDs      []string `json:"media_ids"`
		TaggedUserIDs []string `json:"tagged_user_ids"`
	} `json:"media"`
	Poll *struct {
		Options         []string `json:"options"`
		DurationMinutes int      `json:"duration_minutes"`
		ReplySettings   string   `json:"reply_settings"`
	} `json:"poll"`
	Reply *struct {
		InReplyTo      string   `json:"in_reply_to_tweet_id"`
		ExcludeUserIDs []string `json:"exclude_reply_user_ids"`
	} `json:"reply"`
	EditOptions *struct {
		PreviousPostID string `json:"previous_post_id"`
	} `json:"edit_options"`
	Geo *struct {
		PlaceID string `json:"place_id"`
	} `json:"geo"`
	QuoteTweetID          string `json:"quote_tweet_id"`
	ReplySettings         string `json:"reply_settings"`
	CommunityID           string `json:"community_id"`
	ShareWithFollowers    bool   `json:"share_with_followers"`
	ForSuperFollowersOnly bool   `json:"for_super_followers_only"`
	Nullcast              bool   `json:"nullcast"`
	MadeWithAI            bool   `json:"made_with_ai"`
	PaidPartnership       bool   `json:"paid_partnership"`
	CardURI               string `json:"card_uri"`
	DirectMessageDeepLink string `json:"direct_message_deep_link"`
}

// post is a stored post.
type post struct {
	id        string
	owner     *user
	date      time.Time
	text      string // as received, in NFC
	links     []link
	media     []*medium
	mediaLink string
	replyTo   string
	// conversation is the id of the first post of the thread.
	conversation string
	madeByAI     bool
	history      []string // ids of the earlier versions, oldest first
	removed      bool
}

// link is a URL in a text and its short form. Its span is in characters.
type link struct {
	span
	short, long string
}

func (s *Server) create(c *call) (outcome, *problem) {
	var body newPost
	if refused := c.decode(&body); refused != nil {
		return outcome{}, refused
	}
	var text string
	if body.Text != nil {
		text = norm.NFC.String(*body.Text)
	}
	if refused := body.shape(text); refused != nil {
		return outcome{}, refused
	}
	if n := WeightedLength(text); n > c.user.MaxLength {
		c.note("the text is too long by the weighted count")
		return outcome{}, invalid("Your Tweet text is too long. For more information on how length is determined see https://docs.x.com/fundamentals/counting-characters.", "text", text)
	}
	p := &post{owner: c.user, text: text, madeByAI: body.MadeWithAI}
	if refused := s.attach(c, p, body); refused != nil {
		return outcome{}, refused
	}
	summoned, refused := s.answers(c, p, body)
	if refused != nil {
		return outcome{}, refused
	}
	previous, refused := s.edits(c, body)
	if refused != nil {
		return outcome{}, refused
	}
	switch {
	case body.QuoteTweetID != "", body.CommunityID != "", body.Nullcast, body.ForSuperFollowersOnly:
		return outcome{}, named("not-permitted")
	case len(cashtags.FindAllString(text, -1)) > 1:
		return outcome{}, named("cashtags")
	case c.user.wrote(text, previous, time.Now().Add(-s.core.Pace.Of(duplicateWindow))):
		return outcome{}, named("duplicate")
	case c.app.capped():
		return outcome{}, named("usage-capped")
	}
	s.publish(c, p, previous)
	switch {
	case len(p.links) > 0:
		s.charge(c, "post with a URL", PricePostWithURL)
	case summoned:
		s.charge(c, "summoned reply", PriceSummoned)
	default:
		s.charge(c, "post", PricePost)
	}
	data := p.show(nil)
	data["edit_history_post_ids"] = append(slices.Clone(p.history), p.id)
	return outcome{status: http.StatusCreated, id: p.id, body: map[string]any{"data": data}}, nil
}

// cashtags match links to shares, such as $ABC.
var cashtags = regexp.MustCompile(`(?:^|[\s(])\$[A-Za-z]{1,6}(?:[._][A-Za-z]{1,2})?\b`)

var replySettings = []string{"", "following", "mentionedUsers", "subscribers", "verified"}

// shape checks the body without any other state.
func (b *newPost) shape(text string) *problem {
	attached := 0
	for _, given := range []bool{b.Media != nil, b.Poll != nil, b.QuoteTweetID != ""} {
		if given {
			attached++
		}
	}
	switch {
	case strings.TrimSpace(text) == "" && b.Media == nil:
		return invalid("One or more of the following fields is required: text, media.", "text", text)
	case !utf8.ValidString(text) || holdsForbidden(text):
		return invalid("The text contains invalid characters.", "text", text)
	case attached > 1:
		return invalid("Only one of media, poll and quote_tweet_id may be given.", "")
	case !slices.Contains(replySettings, b.ReplySettings):
		return invalid("$.reply_settings: does not have a value in the enumeration ["+strings.Join(replySettings[1:], ", ")+"]", "reply_settings", b.ReplySettings)
	case b.Reply != nil && !digits.MatchString(b.Reply.InReplyTo):
		return invalid("$.reply.in_reply_to_tweet_id: does not match the regex pattern ^[0-9]{1,19}$", "reply.in_reply_to_tweet_id", b.Reply.InReplyTo)
	case b.EditOptions != nil && !digits.MatchString(b.EditOptions.PreviousPostID):
		return invalid("$.edit_options.previous_post_id: does not match the regex pattern ^[0-9]{1,19}$", "edit_options.previous_post_id", b.EditOptions.PreviousPostID)
	case b.Media != nil && (len(b.Media.MediaIDs) == 0 || len(b.Media.MediaIDs) > maxPhotos):
		return invalid("$.media.media_ids: must have from 1 to 4 items in the array", "media.media_ids", b.Media.MediaIDs...)
	case b.Media != nil && len(b.Media.TaggedUserIDs) > maxTagged:
		return invalid("$.media.tagged_user_ids: must have at most 10 items in the array", "media.tagged_user_ids", b.Media.TaggedUserIDs...)
	case b.Poll != nil:
		return b.pollShape()
	}
	return nil
}

func (b *newPost) pollShape() *problem {
	if n := len(b.Poll.Options); n < 2 || n > 4 {
		return invalid("$.poll.options: must have from 2 to 4 items in the array", "poll.options", b.Poll.Options...)
	}
	for _, option := range b.Poll.Options {
		if n := utf8.RuneCountInString(option); n < 1 || n > 25 {
			return invalid("$.poll.options: must be from 1 to 25 characters long", "poll.options", option)
		}
	}
	if b.Poll.DurationMinutes < 5 || b.Poll.DurationMinutes > 10080 {
		return invalid("$.poll.duration_minutes: must be from 5 to 10080", "poll.duration_minutes")
	}
	return nil
}

// attach finds the media of a post. They must belong to the user, be ready and fit together.
func (s *Server) attach(c *call, p *post, body newPost) *problem {
	if body.Media == nil {
		return nil
	}
	ids := body.Media.MediaIDs
	for _, id := range ids {
		m := s.media[id]
		switch {
		case m == nil, !m.ownedBy(c.user), !m.finalized:
			c.note("media " + id + " is unknown, another user's or not finalized")
			return invalid("Your media IDs are invalid.", "media.media_ids", ids...)
		case m.expired():
			c.note("media " + id + " has expired")
			return invalid("Your media IDs are invalid.", "media.media_ids", ids...)
		case m.state() != stateSucceeded:
			c.note("media " + id + " is " + string(m.state()))
			return invalid("Your media IDs are not ready to be used.", "media.media_ids", ids...)
		case slices.Contains(p.media, m):
			return invalid("Your media IDs are not unique.", "media.media_ids", ids...)
		}
		p.media = append(p.media, m)
		c.log.Media = append(c.log.Media, m.described())
	}
	for _, m := range p.media {
		if m.class() != "photo" && len(p.media) > 1 {
			return invalid("Up to 4 photos, 1 animated GIF or 1 video can be attached.", "media.media_ids", ids...)
		}
	}
	return nil
}

// answers checks the parent of a reply: a post of the user, or one that mentions the user.
func (s *Server) answers(c *call, p *post, body newPost) (summoned bool, refused *problem) {
	if body.Reply == nil {
		return false, nil
	}
	to := s.posts[body.Reply.InReplyTo]
	switch {
	case to == nil, to.removed:
		return false, named("reply-gone")
	case to.owner != c.user && !strings.Contains(strings.ToLower(to.text), "@"+strings.ToLower(c.user.Username)):
		return false, named("reply-forbidden")
	}
	p.replyTo, p.conversation = to.id, to.conversation
	return to.owner != c.user, nil
}

// edits finds the post that an edit replaces; nil without an edit.
func (s *Server) edits(c *call, body newPost) (*post, *problem) {
	if body.EditOptions == nil {
		return nil, nil
	}
	old := s.posts[body.EditOptions.PreviousPostID]
	if !c.user.Premium || old == nil || old.removed || old.owner != c.user || len(old.history) >= maxEdits {
		return nil, named("edit-forbidden")
	}
	first := old
	if len(old.history) > 0 {
		first = s.posts[old.history[0]]
	}
	if time.Since(first.date) > s.core.Pace.Of(editWindow) {
		return nil, named("edit-forbidden")
	}
	return old, nil
}

// wrote reports whether the user posted the same text since a time. The replaced version does not count.
func (u *user) wrote(text string, previous *post, since time.Time) bool {
	if strings.TrimSpace(text) == "" {
		return false
	}
	return slices.ContainsFunc(u.posts, func(p *post) bool {
		return p != previous && p.date.After(since) && strings.TrimSpace(p.text) == strings.TrimSpace(text)
	})
}

// publish stores the post and replaces its previous version.
func (s *Server) publish(c *call, p, previous *post) {
	p.id, p.date = s.newID(), time.Now()
	p.conversation = cmp.Or(p.conversation, p.id)
	runes := []rune(p.text)
	for _, at := range findURLs(runes) {
		p.links = append(p.links, link{span: at, long: string(runes[at.from:at.to]), short: s.shortLink()})
	}
	if len(p.media) > 0 {
		p.mediaLink = s.shortLink()
	}
	if previous != nil {
		p.history = append(slices.Clone(previous.history), previous.id)
		c.log.Removed = []string{previous.id}
		previous.removed = true
		c.user.posts = slices.DeleteFunc(c.user.posts, func(o *post) bool { return o == previous })
	}
	s.posts[p.id] = p
	c.user.posts = append(c.user.posts, p)
	c.app.posted++
}

func (s *Server) shortLink() string { return "https://t.co/" + s.newSecret("link")[:10] }
