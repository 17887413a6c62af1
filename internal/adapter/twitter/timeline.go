package twitter

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// vocabulary is a set of names for the fields of posts. X renames Tweet to Post.
// It ignores a name that it does not know, so a request never mixes both sets.
type vocabulary bool

const (
	newVocabulary vocabulary = false
	oldVocabulary vocabulary = true
)

// query requests all fields that identify a post.
func (v vocabulary) query() url.Values {
	if v == oldVocabulary {
		return url.Values{"tweet.fields": {"created_at,entities,attachments,conversation_id,note_tweet,referenced_tweets"}}
	}
	return url.Values{"post.fields": {"created_at,entities,attachments,conversation_id,note_post"}, "expansions": {"referenced_posts"}}
}

// vocabulary is the one that X understood last; the new one in the beginning.
func (a *Adapter) vocabulary() vocabulary { return vocabulary(a.old.Load()) }

// remember keeps the vocabulary for the life of the process.
func (a *Adapter) remember(words vocabulary) { a.old.Store(bool(words)) }

// page is a part of a timeline.
type page struct {
	Data []post `json:"data"`
	Meta struct {
		NextToken string `json:"next_token"`
	} `json:"meta"`
}

// post is a post of a timeline. Each field is read by both of its names.
type post struct {
	ID             string    `json:"id"`
	Text           string    `json:"text"`
	CreatedAt      time.Time `json:"created_at"`
	ConversationID string    `json:"conversation_id"`
	Attachments    struct {
		MediaKeys []string `json:"media_keys"`
	} `json:"attachments"`
	Entities         entities    `json:"entities"`
	NotePost         *note       `json:"note_post"`
	NoteTweet        *note       `json:"note_tweet"`
	ReferencedPosts  []reference `json:"referenced_posts"`
	ReferencedTweets []reference `json:"referenced_tweets"`
}

// note is the whole text of a long post.
type note struct {
	Text     string   `json:"text"`
	Entities entities `json:"entities"`
}

type entities struct {
	URLs []shortLink `json:"urls"`
}

// shortLink is a link in a text: X replaces it by one of t.co.
type shortLink struct {
	URL      string `json:"url"`
	Expanded string `json:"expanded_url"`
	Unwound  string `json:"unwound_url"`
	MediaKey string `json:"media_key"`
}

type reference struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// note is the post's whole text; nil where X gives none.
func (p post) note() *note {
	for _, n := range []*note{p.NotePost, p.NoteTweet} {
		if n != nil && n.Text != "" {
			return n
		}
	}
	return nil
}

// parent is the id of the post that this one replies to; "" where X names none.
func (p post) parent() string {
	for _, references := range [][]reference{p.ReferencedPosts, p.ReferencedTweets} {
		for _, other := range references {
			if other.Type == "replied_to" {
				return other.ID
			}
		}
	}
	return ""
}

// timeline reads one page of a user's posts. Where X refuses the names of the fields, the error has the
// code codeUnclear.
func (s *sender) timeline(ctx context.Context, user string, query url.Values) (page, *autopost.Error) {
	req, failure := s.request(ctx, http.MethodGet, "2/users/"+user+"/tweets", query, nil)
	if failure != nil {
		return page{}, failure
	}
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	var got page
	switch {
	case failure != nil:
		return page{}, definite(failure)
	case answer.Status == http.StatusBadRequest && namesFields(answer.Body):
		return page{}, unclear("X refuses the names of the fields: " + s.hide.Text(string(answer.Body)))
	case answer.Status >= 300:
		return page{}, refused(answer, s.hide)
	case json.Unmarshal(answer.Body, &got) != nil:
		return page{}, unreadable(answer, s.hide)
	}
	return got, nil
}

// namesFields reports whether a refusal is about a parameter that names fields.
func namesFields(body []byte) bool {
	for _, name := range []string{"post.fields", "tweet.fields", "expansions"} {
		if strings.Contains(string(body), name) {
			return true
		}
	}
	return false
}

// unclear is the failure of a search whose answer lacks requested fields.
func unclear(message string) *autopost.Error {
	return adapter.Refusal(autopost.Transient, autopost.ScopeDelivery, codeUnclear, message)
}
