// Package opml reads lists of feeds that feed readers export, as OPML or CSV. Each feed gets the same id at every import.
package opml

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html/charset"

	"autopost/internal/ingest/pull/item"
)

const (
	// MaxBytes is the largest list.
	MaxBytes = 8 << 20
	maxFeeds = 10_000
	maxDepth = 20
	maxSlug  = 40
)

// Feed is one feed of a list.
type Feed struct {
	// ID depends only on the address.
	ID    string
	URL   string
	Title string
	// Tags are the folders of the feed and its categories in the list.
	Tags []string
}

// Read reads a list: OPML if it starts like XML, else CSV whose first row names the columns url, title and tags. A
// repeated feed counts once. Errors contain the line and the remedy.
func Read(raw []byte) ([]Feed, error) {
	raw = bytes.TrimLeft(bytes.TrimPrefix(raw, []byte("\uFEFF")), " \t\r\n")
	read := readCSV
	if bytes.HasPrefix(raw, []byte("<")) {
		read = readOPML
	}
	feeds, err := read(raw)
	if err != nil {
		return nil, err
	}
	if len(feeds) == 0 {
		return nil, errors.New("the list must contain a feed: add outlines with xmlUrl to OPML, or a column url to CSV")
	}
	seen := map[string]bool{}
	var list []Feed
	for _, f := range feeds {
		f.ID = idOf(f.URL)
		if !seen[f.ID] {
			seen[f.ID] = true
			list = append(list, f)
		}
	}
	return list, nil
}

type outline struct {
	Text     string    `xml:"text,attr"`
	Title    string    `xml:"title,attr"`
	XMLURL   string    `xml:"xmlUrl,attr"`
	Category string    `xml:"category,attr"`
	Outlines []outline `xml:"outline"`
}

func readOPML(raw []byte) ([]Feed, error) {
	var document struct {
		XMLName xml.Name  `xml:"opml"`
		Body    []outline `xml:"body>outline"`
	}
	decoder := xml.NewDecoder(bytes.NewReader(raw))
	decoder.CharsetReader = charset.NewReaderLabel
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("the list must be valid OPML: %w", err)
	}
	var feeds []Feed
	var read func(list []outline, folders []string) error
	read = func(list []outline, folders []string) error {
		if len(folders) > maxDepth {
			return fmt.Errorf("the outlines must have at most %d levels", maxDepth)
		}
		for _, o := range list {
			name := item.Clean(o.Title)
			if name == "" {
				name = item.Clean(o.Text)
			}
			if strings.TrimSpace(o.XMLURL) != "" {
				tags := append([]string{}, folders...)
				for tag := range strings.SplitSeq(o.Category, ",") {
					tags = append(tags, strings.Split(strings.Trim(tag, "/ "), "/")...)
				}
				if err := add(&feeds, o.XMLURL, name, tags); err != nil {
					return err
				}
			}
			inside := folders
			if o.XMLURL == "" && name != "" {
				inside = append(append([]string{}, folders...), name)
			}
			if err := read(o.Outlines, inside); err != nil {
				return err
			}
		}
		return nil
	}
	return feeds, read(document.Body, nil)
}

func readCSV(raw []byte) ([]Feed, error) {
	reader := csv.NewReader(bytes.NewReader(raw))
	reader.FieldsPerRecord = -1
	reader.TrimLeadingSpace = true
	columns := map[string]int{}
	var feeds []Feed
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return feeds, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the list must be OPML or CSV: %w", err)
		}
		if len(columns) == 0 {
			for i, name := range row {
				columns[strings.ToLower(strings.TrimSpace(name))] = i
			}
			if _, ok := columns["url"]; !ok {
				return nil, errors.New("the first row of a CSV must name the columns: write url,title,tags")
			}
			continue
		}
		get := func(name string) string {
			if i, ok := columns[name]; ok && i < len(row) {
				return row[i]
			}
			return ""
		}
		if err := add(&feeds, get("url"), item.Clean(get("title")), strings.FieldsFunc(get("tags"), func(r rune) bool { return r == ';' || r == ',' })); err != nil {
			line, _ := reader.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func add(feeds *[]Feed, address, title string, tags []string) error {
	u, err := url.Parse(strings.TrimSpace(address))
	if err == nil && u.Scheme == "feed" {
		u.Scheme = "https" // feed readers use the scheme feed
	}
	if err != nil || !item.Web(u) {
		return fmt.Errorf("%q (%s) must have an http or https address", item.Shorten(item.Clean(title), 60), host(u))
	}
	if len(*feeds) == maxFeeds {
		return fmt.Errorf("the list must have at most %d feeds: split it", maxFeeds)
	}
	f := Feed{URL: u.String(), Title: title}
	for _, tag := range tags {
		if tag = item.Clean(tag); tag != "" {
			f.Tags = append(f.Tags, tag)
		}
	}
	*feeds = append(*feeds, f)
	return nil
}

func host(u *url.URL) string {
	if u == nil || u.Host == "" {
		return "no host"
	}
	return u.Hostname()
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// idOf returns the shortened host and the first digits of the hash of the address.
func idOf(address string) string {
	u, err := url.Parse(address)
	slug := ""
	if err == nil {
		slug = strings.Trim(notSlug.ReplaceAllString(strings.TrimPrefix(strings.ToLower(u.Hostname()), "www."), "-"), "-")
	}
	if len(slug) > maxSlug {
		slug = strings.Trim(slug[:maxSlug], "-")
	}
	return slug + "-" + item.Hash(address)[:8]
}
