package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost"
)

// postInput is a post from a file, standard input or flags.
type postInput struct {
	text, parseMode, link, schedule, slot, removeAt, comment string
	media, tags, channels, thread                            []string
}

func (d *postInput) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.text, "text", "", "text of the post")
	cmd.Flags().StringVar(&d.parseMode, "parse-mode", "", "HTML, Markdown or None")
	cmd.Flags().StringVar(&d.link, "link", "", "link of the post")
	cmd.Flags().StringArrayVar(&d.media, "media", nil, "URL or file of a medium, or TYPE=URL, TYPE=FILE; TYPE is image, video, audio, file or animation; repeatable")
	cmd.Flags().StringArrayVar(&d.thread, "thread", nil, "text of the next part of a thread; repeatable")
	cmd.Flags().StringVar(&d.comment, "first-comment", "", "reply to the first message")
	cmd.Flags().StringArrayVar(&d.tags, "tag", nil, "tag of the post; repeatable")
	cmd.Flags().StringArrayVar(&d.channels, "channel", nil, "channel that gets the post; repeatable (default: all that its tags select)")
	cmd.Flags().StringVar(&d.schedule, "scheduled-for", "", "earliest `time` to send it, like 2026-12-01T10:00:00+03:00")
	cmd.Flags().StringVar(&d.slot, "slot", "", "next_free: the next free slot of each channel")
	cmd.Flags().StringVar(&d.removeAt, "remove-at", "", "`time` to delete it again, like 2026-12-01T18:00:00+03:00")
}

// read returns the post of the flags, or else of the file or standard input.
func (d *postInput) read(args []string) (payload, error) {
	flagged := d.text+d.parseMode+d.link+d.schedule+d.slot+d.removeAt+d.comment != "" || len(d.media)+len(d.tags)+len(d.channels)+len(d.thread) > 0
	if flagged && len(args) > 0 {
		return payload{}, usageError{errors.New("FILE must not be used with flags of the post: remove one of the two")}
	}
	if flagged {
		return d.payload()
	}
	name := "-"
	if len(args) > 0 {
		name = args[0]
	}
	raw, err := readInput(name)
	if err != nil {
		return payload{}, err
	}
	if !json.Valid(raw) {
		return payload{}, usageError{fmt.Errorf("%s must contain JSON: write {\"text\": \"…\"}, or use flags like --text", inputName(name))}
	}
	return payload{raw: raw}, nil
}

type mediaInput struct {
	Type    string `json:"type"`
	URL     string `json:"url,omitempty"`
	BlobRef string `json:"blob_ref,omitempty"`
	// Meta has the name of a file of this machine.
	Meta autopost.MediaMeta `json:"meta,omitzero"`
	// file is the path of a medium on this machine, "" for a URL.
	file string
}

// partInput is a part of a thread.
type partInput struct {
	Text string `json:"text"`
}

type routingInput struct {
	IncludeChannels []string `json:"include_channels"`
}

// payload is a post in the format of /hooks/push.
type payload struct {
	raw json.RawMessage // of a file or standard input; the other fields are then empty

	Text      string        `json:"text,omitempty"`
	ParseMode string        `json:"parse_mode,omitempty"`
	Link      string        `json:"link,omitempty"`
	Media     []mediaInput  `json:"media,omitempty"`
	Tags      []string      `json:"tags,omitempty"`
	Schedule  string        `json:"scheduled_for,omitempty"`
	Slot      string        `json:"slot,omitempty"`
	RemoveAt  string        `json:"remove_at,omitempty"`
	Routing   *routingInput `json:"routing,omitempty"`
	Thread    []partInput   `json:"thread,omitempty"`
	Comment   string        `json:"first_comment,omitempty"`
}

func (d *postInput) payload() (payload, error) {
	p := payload{Text: d.text, ParseMode: d.parseMode, Link: d.link, Tags: d.tags, Schedule: d.schedule, Slot: d.slot, RemoveAt: d.removeAt, Comment: d.comment}
	for _, text := range d.thread {
		p.Thread = append(p.Thread, partInput{text})
	}
	for _, given := range d.media {
		m, err := medium(given)
		if err != nil {
			return payload{}, usageError{err}
		}
		p.Media = append(p.Media, m)
	}
	if len(d.channels) > 0 {
		p.Routing = &routingInput{d.channels}
	}
	return p, nil
}

// firstFile returns the path of the first medium on this machine, "" if all are URLs.
func (p payload) firstFile() string {
	for _, m := range p.Media {
		if m.file != "" {
			return m.file
		}
	}
	return ""
}

// store puts each file of the post into the media store.
func (p payload) store(put func(file string, kind autopost.MediaKind) (blobRef string, err error)) error {
	for i := range p.Media {
		m := &p.Media[i]
		if m.file == "" {
			continue
		}
		var err error
		if m.BlobRef, err = put(m.file, autopost.MediaKind(m.Type)); err != nil {
			return fmt.Errorf("--media %s: %w", m.file, err)
		}
	}
	return nil
}

// encode returns the JSON of the post.
func (p payload) encode() (json.RawMessage, error) {
	if p.raw != nil {
		return p.raw, nil
	}
	return json.Marshal(p)
}

// mediaTypes maps file extensions to media types.
var mediaTypes = map[string]string{
	".jpg": "image", ".jpeg": "image", ".png": "image", ".webp": "image",
	".gif": "animation", ".mp4": "video", ".mov": "video", ".webm": "video",
	".mp3": "audio", ".m4a": "audio", ".ogg": "audio", ".pdf": "file", ".zip": "file",
}

// medium parses TYPE=SOURCE, or a SOURCE whose file extension gives the type. SOURCE is a URL or a file.
func medium(given string) (mediaInput, error) {
	kind, source, typed := strings.Cut(given, "=")
	if !typed || !slices.Contains(mediaKinds, kind) {
		kind, source = "", given
	}
	u, err := url.Parse(source)
	if err == nil && u.Host != "" {
		kind = cmp.Or(kind, mediaTypes[strings.ToLower(path.Ext(u.Path))])
	} else {
		kind = cmp.Or(kind, mediaTypes[strings.ToLower(filepath.Ext(source))])
	}
	if kind == "" {
		return mediaInput{}, fmt.Errorf("--media must have a known type, got %q: write TYPE=URL or TYPE=FILE with image, video, audio, file or animation", given)
	}
	if err == nil && u.Host != "" {
		return mediaInput{Type: kind, URL: source}, nil
	}
	if at, err := os.Stat(source); err != nil || !at.Mode().IsRegular() {
		return mediaInput{}, fmt.Errorf("--media must be a URL or a file that can be read, got %q: correct the path", source)
	}
	m := mediaInput{Type: kind, file: source}
	if kind == string(autopost.MediaFile) || kind == string(autopost.MediaAudio) {
		m.Meta.Filename = filepath.Base(source)
	}
	return m, nil
}
