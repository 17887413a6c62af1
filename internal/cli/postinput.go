package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

// postInput is a post from a file, standard input or flags.
type postInput struct {
	text, parseMode, link, schedule, removeAt string
	media, tags, channels                     []string
}

func (d *postInput) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.text, "text", "", "text of the post")
	cmd.Flags().StringVar(&d.parseMode, "parse-mode", "", "HTML, Markdown or None")
	cmd.Flags().StringVar(&d.link, "link", "", "link of the post")
	cmd.Flags().StringArrayVar(&d.media, "media", nil, "URL or TYPE=URL of a medium; TYPE is image, video, audio, file or animation; repeatable")
	cmd.Flags().StringArrayVar(&d.tags, "tag", nil, "tag of the post; repeatable")
	cmd.Flags().StringArrayVar(&d.channels, "channel", nil, "channel that gets the post; repeatable (default: all that its tags select)")
	cmd.Flags().StringVar(&d.schedule, "scheduled-for", "", "earliest `time` to send it, like 2026-12-01T10:00:00+03:00")
	cmd.Flags().StringVar(&d.removeAt, "remove-at", "", "`time` to delete it again, like 2026-12-01T18:00:00+03:00")
}

// read returns the payload of the flags, or else of the file or standard input.
func (d *postInput) read(args []string) (json.RawMessage, error) {
	flagged := d.text+d.parseMode+d.link+d.schedule+d.removeAt != "" || len(d.media)+len(d.tags)+len(d.channels) > 0
	if flagged && len(args) > 0 {
		return nil, usageError{errors.New("FILE must not be used with flags of the post: remove one of the two")}
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
		return nil, err
	}
	if !json.Valid(raw) {
		return nil, usageError{fmt.Errorf("%s must contain JSON: write {\"text\": \"…\"}, or use flags like --text", inputName(name))}
	}
	return raw, nil
}

type mediaInput struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type routingInput struct {
	IncludeChannels []string `json:"include_channels"`
}

func (d *postInput) payload() (json.RawMessage, error) {
	var media []mediaInput
	for _, given := range d.media {
		m, err := medium(given)
		if err != nil {
			return nil, usageError{err}
		}
		media = append(media, m)
	}
	var routing *routingInput
	if len(d.channels) > 0 {
		routing = &routingInput{d.channels}
	}
	return json.Marshal(struct {
		Text      string        `json:"text,omitempty"`
		ParseMode string        `json:"parse_mode,omitempty"`
		Link      string        `json:"link,omitempty"`
		Media     []mediaInput  `json:"media,omitempty"`
		Tags      []string      `json:"tags,omitempty"`
		Schedule  string        `json:"scheduled_for,omitempty"`
		RemoveAt  string        `json:"remove_at,omitempty"`
		Routing   *routingInput `json:"routing,omitempty"`
	}{d.text, d.parseMode, d.link, media, d.tags, d.schedule, d.removeAt, routing})
}

// mediaTypes maps file extensions to media types.
var mediaTypes = map[string]string{
	".jpg": "image", ".jpeg": "image", ".png": "image", ".webp": "image",
	".gif": "animation", ".mp4": "video", ".mov": "video", ".webm": "video",
	".mp3": "audio", ".m4a": "audio", ".ogg": "audio", ".pdf": "file", ".zip": "file",
}

// medium parses TYPE=URL, or a URL whose file extension gives the type.
func medium(given string) (mediaInput, error) {
	if kind, address, ok := strings.Cut(given, "="); ok && !strings.Contains(kind, ":") {
		return mediaInput{kind, address}, nil
	}
	u, err := url.Parse(given)
	if err == nil {
		if kind := mediaTypes[strings.ToLower(path.Ext(u.Path))]; kind != "" {
			return mediaInput{kind, given}, nil
		}
	}
	return mediaInput{}, fmt.Errorf("--media must have a known type, got %q: write TYPE=URL with image, video, audio, file or animation", given)
}
