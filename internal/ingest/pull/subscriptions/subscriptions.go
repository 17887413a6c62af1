// Package subscriptions reads the lists of feeds that readers export, as OPML or
// CSV, and gives each feed the id that it has at every import.
package subscriptions

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

	"autopost/internal/ingest/pull/shape"
)

const (
	// MaxBytes bounds a list.
	MaxBytes = 8 << 20
	maxFeeds = 10_000
	maxDepth = 20
	maxSlug  = 40
)

// Feed is one of a list.
type Feed struct {
	// ID is made of the address, so that the same feed gets the same one again.
	ID    string
	URL   string
	Title string
	// Tags are the folders it stands in, or what the list says.
	Tags []string
}

// Read reads a list: OPML where it begins like XML, else CSV with the columns url,
// title and tags, the first row naming them. A feed that stands in it twice counts
// once. Errors name the line and the remedy.
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
		return nil, errors.New("the list names no feed: OPML needs outlines with xmlUrl, CSV a column url")
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
		return nil, fmt.Errorf("this is no OPML that can be read: %w", err)
	}
	var feeds []Feed
	var walk func(list []outline, folders []string) error
	walk = func(list []outline, folders []string) error {
		if len(folders) > maxDepth {
			return fmt.Errorf("the outlines are more than %d levels deep", maxDepth)
		}
		for _, o := range list {
			name := shape.Clean(o.Title)
			if name == "" {
				name = shape.Clean(o.Text)
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
			if err := walk(o.Outlines, inside); err != nil {
				return err
			}
		}
		return nil
	}
	return feeds, walk(document.Body, nil)
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
			return nil, fmt.Errorf("this is neither OPML nor CSV: %w", err)
		}
		if len(columns) == 0 {
			for i, name := range row {
				columns[strings.ToLower(strings.TrimSpace(name))] = i
			}
			if _, ok := columns["url"]; !ok {
				return nil, errors.New("the first row of a CSV names its columns: write url,title,tags")
			}
			continue
		}
		get := func(name string) string {
			if i, ok := columns[name]; ok && i < len(row) {
				return row[i]
			}
			return ""
		}
		if err := add(&feeds, get("url"), shape.Clean(get("title")), strings.FieldsFunc(get("tags"), func(r rune) bool { return r == ';' || r == ',' })); err != nil {
			line, _ := reader.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func add(feeds *[]Feed, address, title string, tags []string) error {
	u, err := url.Parse(strings.TrimSpace(address))
	if err == nil && u.Scheme == "feed" {
		u.Scheme = "https" // a habit of readers
	}
	if err != nil || !shape.Web(u) {
		return fmt.Errorf("%q (%s) is no http or https address of a feed", shape.Shorten(shape.Clean(title), 60), host(u))
	}
	if len(*feeds) == maxFeeds {
		return fmt.Errorf("the list names more than %d feeds: part it", maxFeeds)
	}
	f := Feed{URL: u.String(), Title: title}
	for _, tag := range tags {
		if tag = shape.Clean(tag); tag != "" {
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

// idOf is the host in short and a few digits of the hash of the whole address.
func idOf(address string) string {
	u, err := url.Parse(address)
	slug := ""
	if err == nil {
		slug = strings.Trim(notSlug.ReplaceAllString(strings.TrimPrefix(strings.ToLower(u.Hostname()), "www."), "-"), "-")
	}
	if len(slug) > maxSlug {
		slug = strings.Trim(slug[:maxSlug], "-")
	}
	return slug + "-" + shape.Hash(address)[:8]
}
