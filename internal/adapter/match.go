package adapter

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"autopost"
)

// PostContent is the visible content of a post in a comparable form.
type PostContent struct {
	// Text is the result of [NormalizeText], without markup.
	Text  string
	Media []PostMedium
}

// PostMedium is one medium of a post.
type PostMedium struct {
	// Kind is the platform's kind.
	Kind string
	// ID is the platform's id of the content; "" if unknown.
	ID string
}

// Match states whether a post is the one of a delivery.
type Match int

// The results of Compare.
const (
	Different Match = iota
	// Unclear: the post may belong to this or to another delivery.
	Unclear
	Same
)

// Compare compares a post of unknown origin with a delivery. Different media ids prove nothing, because
// a platform may assign new ids; then the text decides, unless other deliveries of the channel have an
// unknown outcome.
func (c PostContent) Compare(post PostContent, delivery autopost.Delivery) Match {
	alike := func(same func(a, b PostMedium) bool) bool { return slices.EqualFunc(c.Media, post.Media, same) }
	switch {
	case c.Text != post.Text, !alike(func(a, b PostMedium) bool { return a.Kind == b.Kind }):
		return Different
	case alike(func(a, b PostMedium) bool { return a.ID != "" && a.ID == b.ID }):
		return Same
	case c.Text != "" && delivery.KnownPosts != nil && !delivery.KnownPosts.OthersInDoubt:
		return Same
	}
	return Unclear
}

// Others returns the ids of messages that are known not to be the delivery's missing step.
func Others(delivery autopost.Delivery) []string {
	others := slices.Clone(delivery.RenderMeta.Progress.ProviderMessageIDs)
	for _, ids := range delivery.RenderMeta.Progress.Steps {
		others = append(others, ids...)
	}
	if delivery.LastProviderMessageID != nil {
		others = append(others, *delivery.LastProviderMessageID)
	}
	if known := delivery.KnownPosts; known != nil {
		others = slices.Concat(others, known.Before, known.Others)
	}
	return others
}

var tag = regexp.MustCompile(`<[^<>]*>`)

// Plain returns the visible text of a text in HTML.
func Plain(text string) string { return html.UnescapeString(tag.ReplaceAllString(text, "")) }

// NormalizeText normalizes Unicode and white space, which platforms may change.
func NormalizeText(text string) string {
	return strings.Join(strings.Fields(norm.NFC.String(text)), " ")
}
