package adapter

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"autopost"
)

// Look is what a post shows, in a form in which two that are the same are equal.
type Look struct {
	// Text is [Squeeze]d and without markup.
	Text  string
	Media []Shown
}

// Shown is one medium of a post.
type Shown struct {
	// Kind is the platform's.
	Kind string
	// ID is the platform's id of the content; "" where it is not known.
	ID string
}

// Likeness is whether a post is the one that is looked for.
type Likeness int

// The degrees of likeness.
const (
	Different Likeness = iota
	// Unclear is a post that may be the one, or that of another.
	Unclear
	Same
)

// Compare says whether a post that nobody else is known to have made is a delivery's.
// Media whose ids are not the ones expected prove nothing, for a platform may name
// them anew: then the text tells, but not while other deliveries of the channel are in doubt.
func (l Look) Compare(post Look, delivery autopost.Delivery) Likeness {
	alike := func(same func(a, b Shown) bool) bool { return slices.EqualFunc(l.Media, post.Media, same) }
	switch {
	case l.Text != post.Text, !alike(func(a, b Shown) bool { return a.Kind == b.Kind }):
		return Different
	case alike(func(a, b Shown) bool { return a.ID != "" && a.ID == b.ID }):
		return Same
	case l.Text != "" && delivery.KnownPosts != nil && !delivery.KnownPosts.OthersInDoubt:
		return Same
	}
	return Unclear
}

// Others are the ids of messages that are known not to be a delivery's missing step.
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

// Plain is what a reader sees of a text in HTML.
func Plain(text string) string { return html.UnescapeString(tag.ReplaceAllString(text, "")) }

// Squeeze makes texts comparable that a platform has tidied up.
func Squeeze(text string) string { return strings.Join(strings.Fields(norm.NFC.String(text)), " ") }
