package twitter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Treatment is the behaviour for one of the two sets of names for the fields of posts.
type Treatment string

// The treatments. The zero value is Understood. Ignored answers 200 without the fields, and bills the read.
const (
	Understood Treatment = ""
	Ignored    Treatment = "ignored"
	Refused    Treatment = "refused"
)

// SetVocabularies changes the treatment of the new names (post.fields, expansions) and of the old names
// (tweet.fields).
func (s *Server) SetVocabularies(newNames, oldNames Treatment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newNames, s.oldNames = newNames, oldNames
}

const (
	newFields  = "post.fields"
	oldFields  = "tweet.fields"
	expansions = "expansions"
)

// newValues and oldValues are the values of both parameters and the names of the fields in an answer.
var (
	newValues = names("article", "article_title", "attachments", "card_uri", "community_id", "context_annotations", "conversation_id", "created_at",
		"display_text_range", "edit_controls", "entities", "geo", "id", "lang", "matched_media_notes", "media_metadata", "non_public_metrics", "note_post",
		"note_request_suggestions", "organic_metrics", "paid_partnership", "possibly_sensitive", "promoted_metrics", "public_metrics", "reply_settings",
		"scopes", "source", "suggested_source_links", "suggested_source_links_with_counts", "text", "withheld")
	oldValues = names("article", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id", "created_at",
		"display_text_range", "edit_controls", "edit_history_tweet_ids", "entities", "geo", "id", "in_reply_to_user_id", "lang", "made_with_ai",
		"media_metadata", "note_tweet", "possibly_sensitive", "public_metrics", "referenced_tweets", "reply_settings", "source", "text")
	newExpansions = names("article.cover_media", "article.media_entities", "attachments.media_keys", "attachments.media_source_tweet", "attachments.poll_ids",
		"author_id", "edit_history_post_ids", "entities.mentions.username", "geo.place_id", "in_reply_to_user_id", "referenced_posts", "username")
)

func names(of ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range of {
		set[name] = true
	}
	return set
}

// asked returns the names of the requested fields. An unknown value is ignored and noted in the log. A
// request with both sets of names is refused.
func (s *Server) asked(c *call) (map[string]bool, *problem) {
	fields := map[string]bool{}
	if c.query.Has(newFields) && c.query.Has(oldFields) {
		return nil, invalid("The query parameters [post.fields] and [tweet.fields] cannot be used together", oldFields, c.query[oldFields]...)
	}
	for _, parameter := range []struct {
		name      string
		treatment Treatment
		known     map[string]bool
		instead   string // the parameter that a refusal names
	}{
		{newFields, s.newNames, newValues, oldFields},
		{expansions, s.newNames, newExpansions, oldFields},
		{oldFields, s.oldNames, oldValues, newFields},
	} {
		given := c.query.Get(parameter.name)
		if given == "" {
			continue
		}
		if parameter.treatment == Refused {
			return nil, invalid(fmt.Sprintf("The query parameter [%s] is not one of [%s]", parameter.name, parameter.instead), parameter.name, given)
		}
		for value := range strings.SplitSeq(given, ",") {
			if !parameter.known[value] || parameter.treatment == Ignored {
				c.note("X ignores " + parameter.name + "=" + value)
				continue
			}
			fields[value] = true
		}
	}
	return fields, nil
}

// ignoreUnknown removes unknown query parameters and notes them in the log.
func (c *call) ignoreUnknown(known []string) {
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		if !slices.Contains(known, name) {
			c.note("X ignores the query parameter " + name)
			c.query.Del(name)
		}
	}
}
