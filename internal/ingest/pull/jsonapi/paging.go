package jsonapi

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"autopost/internal/ingest/pull/item"
)

// paging configures how to find the next page. A position is the address, the number or the cursor of a page; "" is the
// first page.
type paging struct {
	// By is "pointer" (the answer contains the next address), "link_header", "page" (a number) or "cursor" (the answer
	// contains the value of a parameter).
	By string `json:"by"`
	// Pointer is the JSON pointer to the next address or cursor.
	Pointer string `json:"pointer"`
	// Parameter is the query parameter for the number or the cursor.
	Parameter string `json:"parameter"`
	// First is the number of the first page; 1 when nil.
	First *int `json:"first"`
	// MaxPages limits one poll, 1 to 100; 0 means 10.
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
		return item.BadConfig("paging.max_pages", fmt.Sprintf("must be 1 to %d", maxPages))
	case p.By != "" && p.By != "link_header" && !needsPointer && !needsParameter:
		return item.BadConfig("paging.by", `must be "pointer", "link_header", "page" or "cursor"`)
	case needsPointer != (p.Pointer != ""):
		return item.BadConfig("paging.pointer", `must be set with by "pointer" or "cursor", and only then`)
	case needsParameter != (p.Parameter != ""):
		return item.BadConfig("paging.parameter", `must be set with by "page" or "cursor", and only then`)
	}
	return nil
}

// address returns the address of the page at a position.
func (p paging) address(configured *url.URL, position string) (*url.URL, error) {
	switch {
	case p.By == "page" && position == "":
		position = strconv.Itoa(*p.First)
	case position == "":
		return configured, nil
	case p.By != "cursor" && p.By != "page":
		u, err := url.Parse(position)
		if err != nil || !item.Web(u) {
			return nil, mapping("the address of the next page must be an http or https URL")
		}
		return u, nil
	}
	u := *configured
	query := u.Query()
	query.Set(p.Parameter, position)
	u.RawQuery = query.Encode()
	return &u, nil
}

// after returns the position after a page with this many items; "" after the last page.
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
				return "", mapping("the cursor must be a page number; set cursor_json to {} to start again")
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
	if next = item.Absolute(page.at, next); next == "" {
		return "", mapping("the address of the next page must be an http or https URL")
	}
	return next, nil
}

var link = regexp.MustCompile(`<([^>]*)>([^<]*)`)

// nextLink returns the address with rel="next" in the Link headers.
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
