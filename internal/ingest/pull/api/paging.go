package api

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"autopost/internal/ingest/pull/shape"
)

// paging says how one page leads to the next. A position is what is kept of where
// a page is: its address, its number or its cursor; "" is the first page.
type paging struct {
	// By is "pointer" (the answer holds the next address), "link_header", "page" (a
	// number that is counted up) or "cursor" (the answer holds a value to ask with).
	By string `json:"by"`
	// Pointer leads to the next address or cursor inside an answer.
	Pointer string `json:"pointer"`
	// Parameter of the query that takes the page's number or the cursor.
	Parameter string `json:"parameter"`
	// First is the number of the first page; 1 when nil.
	First *int `json:"first"`
	// MaxPages bounds one poll, 1 to 100; 10 when 0.
	MaxPages int `json:"max_pages"`

	next pointer
}

func (p *paging) check() error {
	var err error
	if p.next, err = parsePointer("paging.pointer", p.Pointer); err != nil {
		return err
	}
	if p.MaxPages == 0 {
		p.MaxPages = defaultPages
	}
	first := 1
	if p.First != nil {
		first = *p.First
	}
	p.First = &first
	needsPointer, needsParameter := p.By == "pointer" || p.By == "cursor", p.By == "page" || p.By == "cursor"
	switch {
	case p.MaxPages < 1 || p.MaxPages > maxPages:
		return shape.BadConfig("paging.max_pages", fmt.Sprintf("must be 1 to %d", maxPages))
	case p.By != "" && p.By != "link_header" && !needsPointer && !needsParameter:
		return shape.BadConfig("paging.by", `must be "pointer", "link_header", "page" or "cursor"`)
	case needsPointer != (p.Pointer != ""):
		return shape.BadConfig("paging.pointer", `is for "pointer" and "cursor", and they need it`)
	case needsParameter != (p.Parameter != ""):
		return shape.BadConfig("paging.parameter", `is for "page" and "cursor", and they need it`)
	}
	return nil
}

// address is where the page at a position is.
func (p paging) address(configured *url.URL, position string) (*url.URL, error) {
	switch {
	case p.By == "page" && position == "":
		position = strconv.Itoa(*p.First)
	case position == "":
		return configured, nil
	case p.By != "cursor" && p.By != "page":
		u, err := url.Parse(position)
		if err != nil || !shape.Web(u) {
			return nil, mapping("the address of the next page is no http or https address")
		}
		return u, nil
	}
	u := *configured
	query := u.Query()
	query.Set(p.Parameter, position)
	u.RawQuery = query.Encode()
	return &u, nil
}

// after is the position behind a page with so many items; "" behind the last.
func (p paging) after(position string, page answer, items int) (string, error) {
	next := ""
	switch p.By {
	case "page":
		if items == 0 {
			return "", nil
		}
		number := *p.First
		if position != "" {
			var err error
			if number, err = strconv.Atoi(position); err != nil {
				return "", mapping("the cursor holds no number of a page; set cursor_json to {} to start over")
			}
		}
		return strconv.Itoa(number + 1), nil
	case "cursor":
		return text(p.next.in(page.document)), nil
	case "pointer":
		next = text(p.next.in(page.document))
	case "link_header":
		next = nextLink(page.header)
	}
	if next == "" {
		return "", nil
	}
	if next = shape.Absolute(page.at, next); next == "" {
		return "", mapping("the address of the next page is no http or https address")
	}
	return next, nil
}

var link = regexp.MustCompile(`<([^>]*)>([^<]*)`)

// nextLink is the address with rel="next" of a Link header.
func nextLink(header http.Header) string {
	for _, value := range header.Values("Link") {
		for _, part := range link.FindAllStringSubmatch(value, -1) {
			for parameter := range strings.SplitSeq(strings.TrimRight(part[2], ", "), ";") {
				name, is, _ := strings.Cut(strings.TrimSpace(parameter), "=")
				if strings.EqualFold(name, "rel") && strings.EqualFold(strings.Trim(is, `" `), "next") {
					return part[1]
				}
			}
		}
	}
	return ""
}
