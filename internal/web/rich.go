package web

import (
	"context"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// richTags are the tags of the dialects of platforms, and the tags that a page shows for them.
var richTags = map[string]string{
	"b": "b", "strong": "b", "i": "i", "em": "i", "u": "u", "ins": "u", "s": "s", "del": "s", "strike": "s", "code": "code", "pre": "pre", "blockquote": "blockquote",
	"a": "a", "mark": "mark", "h1": "b", "h2": "b", "tg-spoiler": "mark",
}

var (
	richTag  = regexp.MustCompile(`<(/?)([a-zA-Z][a-zA-Z0-9-]*)([^<>]*)>`)
	richHref = regexp.MustCompile(`href\s*=\s*"([^"]*)"`)
)

// rich shows a text in the dialect of a platform. Tags that a platform does not know, and addresses that are not of the
// web, are text.
func rich(text string, isHTML bool) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, richHTML(text, isHTML))
		return err
	})
}

func richHTML(text string, isHTML bool) string {
	if !isHTML {
		return templ.EscapeString(text)
	}
	var out strings.Builder
	var open []string
	end := 0
	for _, m := range richTag.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(templ.EscapeString(html.UnescapeString(text[end:m[0]])))
		end = m[1]
		tag, known := richTags[strings.ToLower(text[m[4]:m[5]])]
		isEnd := m[3] > m[2]
		switch {
		case !known:
			out.WriteString(templ.EscapeString(text[m[0]:m[1]]))
		case isEnd:
			if n := slices.Index(open, tag); n >= 0 && open[len(open)-1] == tag {
				open = open[:len(open)-1]
				out.WriteString("</" + tag + ">")
			}
		default:
			open = append(open, tag)
			out.WriteString("<" + tag + hrefOf(tag, text[m[6]:m[7]]) + ">")
		}
	}
	out.WriteString(templ.EscapeString(html.UnescapeString(text[end:])))
	for _, tag := range slices.Backward(open) {
		out.WriteString("</" + tag + ">")
	}
	return out.String()
}

// hrefOf returns the address of a link to the web as an attribute.
func hrefOf(tag, attributes string) string {
	m := richHref.FindStringSubmatch(attributes)
	if tag != "a" || m == nil {
		return ""
	}
	to, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil || to.Scheme != "http" && to.Scheme != "https" {
		return ""
	}
	return ` href="` + templ.EscapeString(to.String()) + `" rel="noreferrer noopener" target="_blank"`
}
