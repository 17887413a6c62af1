package telegram

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"autopost"
)

// address matches a link of an HTML text, or a plain URL.
var address = regexp.MustCompile(`(?i)href="([^"]*)"|https?://[^\s<>"]+`)

// preview returns how the message with this text shows the preview of its link. Telegram ignores the
// wished size without a URL, so it names the post's link if the text has it, else the first URL.
func (s *sender) preview(text string) linkPreview {
	meta, options := s.call.Delivery.RenderMeta, s.settings.LinkPreview
	if meta.DisablePreview {
		return linkPreview{IsDisabled: true}
	}
	if !options.PreferSmallMedia && !options.PreferLargeMedia {
		return options
	}
	urls := addresses(meta, text)
	switch {
	case slices.Contains(urls, s.call.Delivery.Payload.Link):
		options.URL = s.call.Delivery.Payload.Link
	case len(urls) > 0:
		options.URL = urls[0]
	default:
		options.PreferSmallMedia, options.PreferLargeMedia = false, false
	}
	return options
}

// addresses returns the URLs of a text, in their order.
func addresses(meta autopost.RenderMeta, text string) []string {
	var urls []string
	for _, match := range address.FindAllStringSubmatch(text, -1) {
		found := match[1]
		if found == "" {
			found = strings.TrimRight(match[0], ".,;:!?)]}'")
		}
		if meta.ParseMode != "" {
			found = html.UnescapeString(found)
		}
		if strings.HasPrefix(strings.ToLower(found), "http") {
			urls = append(urls, found)
		}
	}
	return urls
}
